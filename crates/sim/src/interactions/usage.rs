//! `usage`, true or bent by a script.

use crate::fault::UsageFault;
use crate::figure::Figure;
use crate::google::Figures;
use serde::Serialize;

/// The figures while the answer is on its way.
pub(super) fn running(figures: Figures) -> Usage {
    written(figures, Figure::Number)
}

/// The final figures as a script wants them; `None`: they are not told.
pub(super) fn told(figures: Figures, fault: UsageFault) -> Option<Usage> {
    if fault == UsageFault::Missing {
        return None;
    }
    Some(written(figures, |figure| Figure::bent(figure, fault)))
}

fn written(figures: Figures, bend: impl Fn(u64) -> Figure) -> Usage {
    let by_modality = |shares: &[(&'static str, u64)]| -> Vec<Share> {
        shares
            .iter()
            .filter(|(_, tokens)| *tokens > 0)
            .map(|(modality, tokens)| Share {
                modality,
                tokens: bend(*tokens),
            })
            .collect()
    };
    Usage {
        total_input_tokens: bend(figures.input),
        input_tokens_by_modality: by_modality(&[
            ("text", figures.input_text()),
            ("image", figures.input_images),
            ("audio", figures.input_sound),
        ]),
        total_cached_tokens: bend(figures.cached),
        total_output_tokens: bend(figures.output),
        output_tokens_by_modality: by_modality(&[("image", figures.output_images)]),
        total_tool_use_tokens: bend(figures.tool_use),
        total_thought_tokens: bend(figures.thoughts),
        total_tokens: bend(figures.total()),
        grounding_tool_count: match figures.hosted.searches {
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
    total_tokens: Figure,
    total_input_tokens: Figure,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    input_tokens_by_modality: Vec<Share>,
    total_cached_tokens: Figure,
    total_output_tokens: Figure,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    output_tokens_by_modality: Vec<Share>,
    total_tool_use_tokens: Figure,
    total_thought_tokens: Figure,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    grounding_tool_count: Vec<ToolCount>,
}

#[derive(Debug, Clone, Serialize)]
struct ToolCount {
    r#type: &'static str,
    count: Figure,
}

#[derive(Debug, Clone, Serialize)]
struct Share {
    modality: &'static str,
    tokens: Figure,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn thoughts_and_tools_stand_beside_input_and_output() {
        let figures = Figures {
            input: 138,
            cached: 40,
            tool_use: 7,
            output: 20,
            thoughts: 141,
            ..Figures::default()
        };
        let shown = |usage| serde_json::to_value(usage).unwrap();
        assert_eq!(
            shown(told(figures, UsageFault::Exact)),
            json!({"total_tokens": 306, "total_input_tokens": 138,
                "input_tokens_by_modality": [{"modality": "text", "tokens": 138}],
                "total_cached_tokens": 40, "total_output_tokens": 20, "total_tool_use_tokens": 7,
                "total_thought_tokens": 141})
        );
        assert_eq!(shown(told(figures, UsageFault::Missing)), json!(null));
        let bent = shown(told(figures, UsageFault::Text));
        assert_eq!(bent["total_tokens"], "306");
    }
}
