//! `usageMetadata`.

use crate::json::Raw;
use crate::json::write::{Object, object};
use crate::usage::Usage;
use crate::usage::separate::{self, Names};

const NAMES: Names = Names {
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

/// Reads a usage object.
pub fn read_usage(usage: Raw<'_>) -> Option<Usage> {
    separate::read_usage(usage, &NAMES)
}

/// Writes a usage object. Counts of zero that say nothing are left out.
pub(super) fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    object(out, |told| {
        told.number("promptTokenCount", usage.input_total());
        let visible = usage.output_total().saturating_sub(usage.reasoning);
        told.number("candidatesTokenCount", visible);
        told.number("totalTokenCount", usage.total());
        if usage.cached_input > 0 {
            told.number("cachedContentTokenCount", usage.cached_input);
        }
        if usage.reasoning > 0 {
            told.number("thoughtsTokenCount", usage.reasoning);
        }
        modalities(
            told,
            "promptTokensDetails",
            usage.image_input,
            usage.audio_input,
        );
        modalities(
            told,
            "candidatesTokensDetails",
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
        for (modality, tokens) in [("IMAGE", images), ("AUDIO", sound)] {
            if tokens > 0 {
                list.object(|item| {
                    item.text("modality", modality).number("tokenCount", tokens);
                });
            }
        }
    });
}
