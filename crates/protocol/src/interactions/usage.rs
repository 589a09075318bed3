//! Reads and writes the usage object of Interactions.

use crate::json::Raw;
use crate::json::write::object;
use crate::usage::Usage;
use crate::usage::separate_thoughts::{self, CountNames};

const NAMES: CountNames = CountNames {
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

pub(crate) fn read_usage(usage: Raw<'_>) -> Option<Usage> {
    separate_thoughts::read_usage(usage, &NAMES)
}

pub(super) fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    object(out, |it| {
        it.number("total_input_tokens", usage.input_total());
        let visible = usage.output_total().saturating_sub(usage.reasoning);
        it.number("total_output_tokens", visible);
        it.number("total_thought_tokens", usage.reasoning);
        it.number("total_cached_tokens", usage.cached_input);
        it.number("total_tokens", usage.total());
        let media = [("image", usage.image_input), ("audio", usage.audio_input)];
        separate_thoughts::write_modalities(it, "input_tokens_by_modality", "tokens", media);
        let media = [("image", usage.image_output), ("audio", usage.audio_output)];
        separate_thoughts::write_modalities(it, "output_tokens_by_modality", "tokens", media);
    });
}
