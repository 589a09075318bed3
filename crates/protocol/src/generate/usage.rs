//! Reads and writes the usage object of Generate Content, `usageMetadata`.

use crate::json::Raw;
use crate::json::write::object;
use crate::usage::Usage;
use crate::usage::separate_thoughts::{self, CountNames};

const NAMES: CountNames = CountNames {
    prompt: "promptTokenCount",
    tool_use: "toolUsePromptTokenCount",
    cached: "cachedContentTokenCount",
    visible: "candidatesTokenCount",
    thoughts: "thoughtsTokenCount",
    prompt_by_modality: "promptTokensDetails",
    visible_by_modality: "candidatesTokensDetails",
    tool_calls: None,
    tokens: "tokenCount",
};

pub(crate) fn read_usage(usage: Raw<'_>) -> Option<Usage> {
    separate_thoughts::read_usage(usage, &NAMES)
}

/// Writes a usage object without optional counts that are zero.
pub(super) fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    object(out, |it| {
        it.number("promptTokenCount", usage.input_total());
        let visible = usage.output_total().saturating_sub(usage.reasoning);
        it.number("candidatesTokenCount", visible);
        it.number("totalTokenCount", usage.total());
        if usage.cached_input > 0 {
            it.number("cachedContentTokenCount", usage.cached_input);
        }
        if usage.reasoning > 0 {
            it.number("thoughtsTokenCount", usage.reasoning);
        }
        let media = [("IMAGE", usage.image_input), ("AUDIO", usage.audio_input)];
        separate_thoughts::write_modalities(it, "promptTokensDetails", "tokenCount", media);
        let media = [("IMAGE", usage.image_output), ("AUDIO", usage.audio_output)];
        separate_thoughts::write_modalities(it, "candidatesTokensDetails", "tokenCount", media);
    });
}
