//! Writes `usage`, either true or changed by a fault.

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
    let by_modality = |shares: &[(&'static str, u64)]| -> Vec<ModalityTokens> {
        shares
            .iter()
            .filter(|(_, tokens)| *tokens > 0)
            .map(|(modality, tokens)| ModalityTokens {
                modality,
                tokens: bend(*tokens),
            })
            .collect()
    };
    Usage {
        total_input_tokens: bend(counts.input),
        input_tokens_by_modality: by_modality(&[
            ("text", counts.input_text()),
            ("image", counts.input_images),
            ("audio", counts.input_sound),
        ]),
        total_cached_tokens: bend(counts.cached),
        total_output_tokens: bend(counts.output),
        output_tokens_by_modality: by_modality(&[("image", counts.output_images)]),
        total_tool_use_tokens: bend(counts.tool_use),
        total_thought_tokens: bend(counts.thoughts),
        total_tokens: bend(counts.total()),
        grounding_tool_count: match counts.hosted.searches {
            0 => Vec::new(),
            searches => vec![ToolCount {
                r#type: "google_search",
                count: bend(searches),
            }],
        },
    }
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Usage {
    total_tokens: UsageNumber,
    total_input_tokens: UsageNumber,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    input_tokens_by_modality: Vec<ModalityTokens>,
    total_cached_tokens: UsageNumber,
    total_output_tokens: UsageNumber,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    output_tokens_by_modality: Vec<ModalityTokens>,
    total_tool_use_tokens: UsageNumber,
    total_thought_tokens: UsageNumber,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    grounding_tool_count: Vec<ToolCount>,
}

#[derive(Debug, Clone, Serialize)]
struct ToolCount {
    r#type: &'static str,
    count: UsageNumber,
}

#[derive(Debug, Clone, Serialize)]
struct ModalityTokens {
    modality: &'static str,
    tokens: UsageNumber,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn thoughts_and_tools_stand_beside_input_and_output() {
        let counts = TokenCounts {
            input: 138,
            cached: 40,
            tool_use: 7,
            output: 20,
            thoughts: 141,
            ..TokenCounts::default()
        };
        let shown = |usage| serde_json::to_value(usage).unwrap();
        assert_eq!(
            shown(reported(counts, UsageFault::Exact)),
            json!({"total_tokens": 306, "total_input_tokens": 138,
                "input_tokens_by_modality": [{"modality": "text", "tokens": 138}],
                "total_cached_tokens": 40, "total_output_tokens": 20, "total_tool_use_tokens": 7,
                "total_thought_tokens": 141})
        );
        assert_eq!(shown(reported(counts, UsageFault::Missing)), json!(null));
        let with_fault = shown(reported(counts, UsageFault::Text));
        assert_eq!(with_fault["total_tokens"], "306");
    }
}
