//! `usageMetadata`, true or bent by a script. Counts of nothing are left out, as the vendor does.

use super::request::Request;
use crate::fault::{Script, UsageFault};
use crate::figure::Figure;
use crate::mind::{MediaKind, Output};
use serde::Serialize;

/// True figures of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    prompt: u64,
    prompt_images: u64,
    prompt_sound: u64,
    cached: u64,
    tool_use: u64,
    /// Visible output, pictures included.
    candidates: u64,
    candidate_images: u64,
    thoughts: u64,
}

impl Figures {
    pub(super) fn of(request: &Request, outputs: &[Output], script: &Script) -> Self {
        let prompt = &request.prompt;
        let tokens = prompt.tokens();
        let cached = script.cached.unwrap_or_else(|| prompt.cached_tokens());
        let thoughts = outputs.iter().map(|output| output.reasoning_tokens).sum();
        let all: u64 = outputs.iter().map(|output| output.tokens).sum();
        let candidate_images = request
            .modalities
            .picture
            .map_or(0, |picture| picture.tokens * outputs.len() as u64);
        Self {
            prompt: tokens,
            prompt_images: prompt.media_tokens(MediaKind::Image),
            prompt_sound: prompt.media_tokens(MediaKind::Sound),
            cached: cached.min(tokens),
            tool_use: script.google.tool_use_tokens.unwrap_or(0),
            candidates: all.saturating_sub(thoughts) + candidate_images,
            candidate_images,
            thoughts,
        }
    }

    /// The figures of a prompt that was blocked.
    pub(super) fn unanswered(self) -> Self {
        Self {
            candidates: 0,
            candidate_images: 0,
            thoughts: 0,
            ..self
        }
    }

    /// The figures while the answer is on its way: so many tokens were given yet.
    pub(super) fn so_far(self, given: u64) -> Usage {
        let thoughts = self.thoughts.min(given);
        Self {
            candidates: (given - thoughts).min(self.candidates),
            candidate_images: 0,
            thoughts,
            ..self
        }
        .written(Figure::Number)
    }

    /// The final figures as a script wants them; `None`: they are not told.
    pub(super) fn told(self, fault: UsageFault) -> Option<Usage> {
        if fault == UsageFault::Missing {
            return None;
        }
        Some(self.written(|figure| Figure::bent(figure, fault)))
    }

    fn written(self, bend: impl Fn(u64) -> Figure) -> Usage {
        let some = |figure: u64| (figure > 0).then(|| bend(figure));
        let by_modality = |figures: &[(&'static str, u64)]| -> Vec<Share> {
            figures
                .iter()
                .filter(|(_, tokens)| *tokens > 0)
                .map(|(modality, tokens)| Share {
                    modality,
                    token_count: bend(*tokens),
                })
                .collect()
        };
        let prompt_media = self.prompt_images + self.prompt_sound;
        let total = self.prompt + self.tool_use + self.candidates + self.thoughts;
        Usage {
            prompt_token_count: bend(self.prompt),
            cached_content_token_count: some(self.cached),
            candidates_token_count: some(self.candidates),
            tool_use_prompt_token_count: some(self.tool_use),
            thoughts_token_count: some(self.thoughts),
            total_token_count: bend(total),
            prompt_tokens_details: by_modality(&[
                ("TEXT", self.prompt.saturating_sub(prompt_media)),
                ("IMAGE", self.prompt_images),
                ("AUDIO", self.prompt_sound),
            ]),
            cache_tokens_details: by_modality(&[("TEXT", self.cached)]),
            candidates_tokens_details: by_modality(&[("IMAGE", self.candidate_images)]),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    prompt_token_count: Figure,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_content_token_count: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates_token_count: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_prompt_token_count: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thoughts_token_count: Option<Figure>,
    total_token_count: Figure,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompt_tokens_details: Vec<Share>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cache_tokens_details: Vec<Share>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates_tokens_details: Vec<Share>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Share {
    modality: &'static str,
    token_count: Figure,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const FIGURES: Figures = Figures {
        prompt: 300,
        prompt_images: 255,
        prompt_sound: 0,
        cached: 40,
        tool_use: 7,
        candidates: 20,
        candidate_images: 0,
        thoughts: 5,
    };

    fn shown(usage: Option<Usage>) -> Value {
        serde_json::to_value(usage).unwrap()
    }

    #[test]
    fn true_usage_keeps_thoughts_apart_and_leaves_out_nothing_but_zeros() {
        assert_eq!(
            shown(FIGURES.told(UsageFault::Exact)),
            json!({"promptTokenCount": 300, "cachedContentTokenCount": 40,
                "candidatesTokenCount": 20, "toolUsePromptTokenCount": 7, "thoughtsTokenCount": 5,
                "totalTokenCount": 332,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 45},
                    {"modality": "IMAGE", "tokenCount": 255}],
                "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 40}]})
        );
        assert_eq!(
            shown(FIGURES.unanswered().told(UsageFault::Exact))["totalTokenCount"],
            307
        );
    }

    #[test]
    fn thoughts_are_counted_before_words() {
        let usage = shown(Some(FIGURES.so_far(3)));
        assert_eq!(usage["thoughtsTokenCount"], 3);
        assert_eq!(usage.get("candidatesTokenCount"), None);
        let usage = shown(Some(FIGURES.so_far(99)));
        assert_eq!(usage["candidatesTokenCount"], 20);
    }

    #[test]
    fn scripts_bend_every_figure() {
        for (fault, total) in [
            (UsageFault::Missing, json!(null)),
            (UsageFault::Zero, json!(0)),
            (UsageFault::Negative, json!(-5)),
            (UsageFault::Text, json!("332")),
            (UsageFault::Shrinking, json!(166)),
        ] {
            assert_eq!(shown(FIGURES.told(fault))["totalTokenCount"], total);
        }
    }
}
