//! What an upstream reports of the tokens of a video.

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
const MODALITIES: [&str; 5] = ["text", "image", "audio", "video", "document"];

/// Counts of tokens, as far as they were reported.
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

    /// The tokens of the video itself, where they were told apart.
    pub(super) fn video_tokens(&self) -> Option<u64> {
        let video = self.output.iter().find(|(modality, _)| modality == "video");
        video.map(|(_, tokens)| *tokens)
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
            let told = item["modality"].as_str()?;
            let known = MODALITIES
                .into_iter()
                .find(|it| it.eq_ignore_ascii_case(told))?;
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
