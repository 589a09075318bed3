//! Writes the `usage` object, either true or changed by a fault.

use super::request::Request;
use crate::fault::{Script, UsageFault};
use crate::model::{MediaKind, Output};
use crate::tokens::count_tokens;
use crate::true_usage::{HostedTools, TrueUsage};
use crate::usage_number::UsageNumber;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenCounts {
    prompt: u64,
    cached: u64,
    cache_write: u64,
    completion: u64,
    reasoning: u64,
    audio_in: u64,
    audio_out: u64,
    hosted: HostedTools,
}

impl TokenCounts {
    pub(super) fn of(request: &Request, outputs: &[Output], script: &Script) -> Self {
        let prompt = &request.prompt;
        let tokens = prompt.tokens();
        let cached = script
            .cached
            .unwrap_or_else(|| prompt.cached_tokens())
            .min(tokens);
        Self {
            prompt: tokens,
            cached,
            cache_write: script.cache_write.unwrap_or(0).min(tokens - cached),
            completion: outputs.iter().map(|output| output.tokens).sum(),
            reasoning: outputs.iter().map(|output| output.reasoning_tokens).sum(),
            audio_in: prompt.media_tokens(MediaKind::Sound),
            audio_out: outputs
                .iter()
                .filter(|output| request.speaks(output))
                .map(|output| count_tokens(output.text.as_str()))
                .sum(),
            hosted: HostedTools {
                fetches: 0,
                ..script.hosted
            },
        }
    }

    pub(super) fn true_usage(self) -> TrueUsage {
        TrueUsage {
            fresh_input: self.prompt - self.cached - self.cache_write,
            cache_read: self.cached,
            cache_write: self.cache_write,
            output: self.completion,
            reasoning: self.reasoning,
            tools: self.hosted,
        }
    }

    /// The usage after this many output tokens have been sent.
    pub(super) fn so_far(self, completion: u64) -> Usage {
        let given = completion.min(self.completion);
        Self {
            completion: given,
            reasoning: self.reasoning.min(given),
            audio_out: self.audio_out.min(given),
            ..self
        }
        .wire_usage(UsageNumber::Number)
    }

    /// The final usage, changed by a fault; `None` if the fault is that it is missing.
    pub(super) fn reported(self, fault: UsageFault) -> Option<Usage> {
        if fault == UsageFault::Missing {
            return None;
        }
        Some(Usage {
            cost: (fault == UsageFault::Costed).then_some(UsageNumber::Raw("0.00014")),
            ..self.wire_usage(|number| UsageNumber::with_fault(number, fault))
        })
    }

    fn wire_usage(self, bend: impl Fn(u64) -> UsageNumber) -> Usage {
        Usage {
            prompt_tokens: bend(self.prompt),
            completion_tokens: bend(self.completion),
            total_tokens: bend(self.prompt + self.completion),
            prompt_tokens_details: PromptDetails {
                cached_tokens: bend(self.cached),
                cache_write_tokens: bend(self.cache_write),
                audio_tokens: bend(self.audio_in),
            },
            completion_tokens_details: CompletionDetails {
                reasoning_tokens: bend(self.reasoning),
                audio_tokens: bend(self.audio_out),
                accepted_prediction_tokens: bend(0),
                rejected_prediction_tokens: bend(0),
            },
            server_side_tool_usage_details: (!self.hosted.is_none()).then(|| HostedDetails {
                web_search_calls: bend(self.hosted.searches),
                code_interpreter_calls: bend(self.hosted.code_runs),
                file_search_calls: bend(self.hosted.file_searches),
            }),
            cost: None,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Usage {
    prompt_tokens: UsageNumber,
    completion_tokens: UsageNumber,
    total_tokens: UsageNumber,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_side_tool_usage_details: Option<HostedDetails>,
    /// Only services that aggregate several vendors send a cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<UsageNumber>,
}

#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
struct HostedDetails {
    web_search_calls: UsageNumber,
    code_interpreter_calls: UsageNumber,
    file_search_calls: UsageNumber,
}

#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
struct PromptDetails {
    cached_tokens: UsageNumber,
    cache_write_tokens: UsageNumber,
    audio_tokens: UsageNumber,
}

#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
struct CompletionDetails {
    reasoning_tokens: UsageNumber,
    audio_tokens: UsageNumber,
    accepted_prediction_tokens: UsageNumber,
    rejected_prediction_tokens: UsageNumber,
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: TokenCounts = TokenCounts {
        prompt: 100,
        cached: 40,
        cache_write: 10,
        completion: 20,
        reasoning: 5,
        audio_in: 3,
        audio_out: 2,
        hosted: HostedTools {
            searches: 0,
            fetches: 0,
            code_runs: 0,
            file_searches: 0,
        },
    };

    fn shown(usage: Option<&Usage>) -> String {
        serde_json::to_string(&usage).unwrap()
    }

    #[test]
    fn true_usage_has_all_classes() {
        assert_eq!(
            shown(COUNTS.reported(UsageFault::Exact).as_ref()),
            r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":10,"audio_tokens":3},"completion_tokens_details":{"reasoning_tokens":5,"audio_tokens":2,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}"#
        );
    }

    #[test]
    fn scripts_bend_every_figure() {
        for (fault, part) in [
            (UsageFault::Missing, "null"),
            (UsageFault::Zero, r#""prompt_tokens":0,"#),
            (UsageFault::Negative, r#""completion_tokens":-5,"#),
            (UsageFault::Huge, r#""total_tokens":9000000000000000000,"#),
            (
                UsageFault::Overflow,
                r#""total_tokens":99999999999999999999999999,"#,
            ),
            (UsageFault::Text, r#""total_tokens":"120","#),
            (UsageFault::Fraction, r#""total_tokens":12.5,"#),
            (UsageFault::Shrinking, r#""total_tokens":60,"#),
        ] {
            let shown = shown(COUNTS.reported(fault).as_ref());
            assert!(shown.contains(part), "{fault:?}: {shown}");
        }
        assert!(shown(Some(&COUNTS.so_far(3))).contains(r#""completion_tokens":3,"#));
        assert!(shown(Some(&COUNTS.so_far(99))).contains(r#""completion_tokens":20,"#));
    }
}
