//! The usage of an interaction.

use crate::json::Raw;
use crate::json::write::{Object, object};
use crate::usage::Usage;
use crate::usage::separate::{self, Names};

const NAMES: Names = Names {
    prompt: "total_input_tokens",
    tool_use: "total_tool_use_tokens",
    cached: "total_cached_tokens",
    visible: "total_output_tokens",
    thoughts: "total_thought_tokens",
    prompt_by_modality: "input_tokens_by_modality",
    visible_by_modality: "output_tokens_by_modality",
    tool_calls: Some("grounding_tool_count"),
    tokens: "tokens",
};

/// Reads a usage object.
pub fn read_usage(usage: Raw<'_>) -> Option<Usage> {
    separate::read_usage(usage, &NAMES)
}

/// Writes a usage object.
pub(super) fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    object(out, |told| {
        told.number("total_input_tokens", usage.input_total());
        let visible = usage.output_total().saturating_sub(usage.reasoning);
        told.number("total_output_tokens", visible);
        told.number("total_thought_tokens", usage.reasoning);
        told.number("total_cached_tokens", usage.cached_input);
        told.number("total_tokens", usage.total());
        modalities(
            told,
            "input_tokens_by_modality",
            usage.image_input,
            usage.audio_input,
        );
        modalities(
            told,
            "output_tokens_by_modality",
            usage.image_output,
            usage.audio_output,
        );
    });
}

fn modalities(told: &mut Object<'_>, name: &str, images: u64, sound: u64) {
    if images == 0 && sound == 0 {
        return;
    }
    told.array(name, |list| {
        for (modality, tokens) in [("image", images), ("audio", sound)] {
            if tokens > 0 {
                list.object(|item| {
                    item.text("modality", modality).number("tokens", tokens);
                });
            }
        }
    });
}
