//! Writes `usageMetadata`, either true or changed by a fault. As with the vendor, zero counts are left out.

use crate::fault::UsageFault;
use crate::google::TokenCounts;
use crate::usage_number::UsageNumber;
use serde::Serialize;

/// The usage while the answer is being sent.
pub(super) fn running(counts: TokenCounts) -> Usage {
    wire_usage(counts, UsageNumber::Number)
}

/// The final usage, changed by a fault; `None` if the fault is that it is missing.
pub(super) fn reported(counts: TokenCounts, fault: UsageFault) -> Option<Usage> {
    if fault == UsageFault::Missing {
        return None;
    }
    Some(wire_usage(counts, |number| {
        UsageNumber::with_fault(number, fault)
    }))
}

fn wire_usage(counts: TokenCounts, bend: impl Fn(u64) -> UsageNumber) -> Usage {
    let some = |number: u64| (number > 0).then(|| bend(number));
    let by_modality = |shares: &[(&'static str, u64)]| -> Vec<ModalityTokens> {
        shares
            .iter()
            .filter(|(_, tokens)| *tokens > 0)
            .map(|(modality, tokens)| ModalityTokens {
                modality,
                token_count: bend(*tokens),
            })
            .collect()
    };
    Usage {
        prompt_token_count: bend(counts.input),
        cached_content_token_count: some(counts.cached),
        candidates_token_count: some(counts.output),
        tool_use_prompt_token_count: some(counts.tool_use),
        thoughts_token_count: some(counts.thoughts),
        total_token_count: bend(counts.total()),
        prompt_tokens_details: by_modality(&[
            ("TEXT", counts.input_text()),
            ("IMAGE", counts.input_images),
            ("AUDIO", counts.input_sound),
        ]),
        cache_tokens_details: by_modality(&[("TEXT", counts.cached)]),
        candidates_tokens_details: by_modality(&[("IMAGE", counts.output_images)]),
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    prompt_token_count: UsageNumber,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_content_token_count: Option<UsageNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates_token_count: Option<UsageNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_prompt_token_count: Option<UsageNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thoughts_token_count: Option<UsageNumber>,
    total_token_count: UsageNumber,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompt_tokens_details: Vec<ModalityTokens>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cache_tokens_details: Vec<ModalityTokens>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates_tokens_details: Vec<ModalityTokens>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ModalityTokens {
    modality: &'static str,
    token_count: UsageNumber,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::true_usage::HostedTools;
    use serde_json::{Value, json};

    const COUNTS: TokenCounts = TokenCounts {
        input: 300,
        input_images: 255,
        input_sound: 0,
        cached: 40,
        tool_use: 7,
        output: 20,
        output_images: 0,
        thoughts: 5,
        hosted: HostedTools {
            searches: 0,
            fetches: 0,
            code_runs: 0,
            file_searches: 0,
        },
    };

    fn shown(usage: Option<Usage>) -> Value {
        serde_json::to_value(usage).unwrap()
    }

    #[test]
    fn true_usage_keeps_thoughts_apart_and_leaves_out_nothing_but_zeros() {
        assert_eq!(
            shown(reported(COUNTS, UsageFault::Exact)),
            json!({"promptTokenCount": 300, "cachedContentTokenCount": 40,
                "candidatesTokenCount": 20, "toolUsePromptTokenCount": 7, "thoughtsTokenCount": 5,
                "totalTokenCount": 332,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 45},
                    {"modality": "IMAGE", "tokenCount": 255}],
                "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 40}]})
        );
        let blocked = shown(Some(running(COUNTS.unanswered())));
        assert_eq!(blocked.get("candidatesTokenCount"), None);
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
            assert_eq!(shown(reported(COUNTS, fault))["totalTokenCount"], total);
        }
    }
}
