//! Reads the token counts that an upstream reports for a video.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::write::{Array, Object};

const TOTALS: [&str; 6] = [
    "total_input_tokens",
    "total_cached_tokens",
    "total_output_tokens",
    "total_thought_tokens",
    "total_tool_use_tokens",
    "total_tokens",
];
/// The index of `total_output_tokens`.
const OUTPUT: usize = 2;
const MODALITIES: [&str; 5] = ["text", "image", "audio", "video", "document"];

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Usage {
    totals: [u64; TOTALS.len()],
    input: Counts,
    output: Counts,
}

type Counts = Vec<(String, u64)>;

impl Usage {
    pub(super) fn read(value: &Value) -> Self {
        Self {
            totals: TOTALS.map(|name| value[name].as_u64().unwrap_or(0)),
            input: by_modality(&value["input_tokens_by_modality"]),
            output: by_modality(&value["output_tokens_by_modality"]),
        }
    }

    /// The tokens of the video itself, if they are reported separately.
    pub(super) fn reported_video_tokens(&self) -> Option<u64> {
        let video = self.output.iter().find(|(modality, _)| modality == "video");
        video.map(|(_, tokens)| *tokens)
    }

    /// The tokens of a delivered video: those reported separately, otherwise all output that is not
    /// reported as something else. A count of zero means that nothing was reported.
    pub(super) fn video_tokens(&self) -> Option<u64> {
        let tokens = self.reported_video_tokens().unwrap_or_else(|| {
            let others = self.output.iter().map(|(_, tokens)| *tokens);
            let others = others.fold(0, u64::saturating_add);
            self.totals[OUTPUT].saturating_sub(others)
        });
        (tokens > 0).then_some(tokens)
    }

    pub(super) fn write(&self, object: &mut Object<'_>) {
        object.object("usage", |usage| {
            for (name, tokens) in TOTALS.into_iter().zip(self.totals) {
                usage.number(name, tokens);
            }
            for (name, counts) in [
                ("input_tokens_by_modality", &self.input),
                ("output_tokens_by_modality", &self.output),
            ] {
                if !counts.is_empty() {
                    usage.array(name, |list| write_counts(list, counts));
                }
            }
        });
    }
}

fn by_modality(list: &Value) -> Counts {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| {
            let modality = item["modality"].as_str()?;
            let known = MODALITIES
                .into_iter()
                .find(|it| it.eq_ignore_ascii_case(modality))?;
            Some((known.to_owned(), item["tokens"].as_u64()?))
        })
        .take(MODALITIES.len())
        .collect()
}

fn write_counts(list: &mut Array<'_>, counts: &Counts) {
    for (modality, tokens) in counts {
        list.object(|item| {
            item.text("modality", modality).number("tokens", *tokens);
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_without_details_counts_as_video() {
        for (usage, tokens) in [
            (
                json!({ "total_output_tokens": 60, "output_tokens_by_modality": [{ "modality": "VIDEO", "tokens": 50 }] }),
                Some(50),
            ),
            (json!({ "total_output_tokens": 60 }), Some(60)),
            (
                json!({ "total_output_tokens": 60, "output_tokens_by_modality": [] }),
                Some(60),
            ),
            (
                json!({ "total_output_tokens": 60, "output_tokens_by_modality": [{ "modality": "text", "tokens": 9 }] }),
                Some(51),
            ),
            (json!({ "total_output_tokens": 0 }), None),
            (json!({ "total_output_tokens": -1 }), None),
            (json!({ "total_output_tokens": "60" }), None),
            (
                json!({ "output_tokens_by_modality": [{ "modality": "video", "tokens": 0 }] }),
                None,
            ),
            (json!({}), None),
            (Value::Null, None),
        ] {
            assert_eq!(Usage::read(&usage).video_tokens(), tokens, "{usage}");
        }
    }
}
