//! The usage of an interaction.

use crate::apart::{self, Names};
use crate::json::Raw;
use crate::usage::Usage;

const NAMES: Names = Names {
    prompt: "total_input_tokens",
    tool_use: "total_tool_use_tokens",
    cached: "total_cached_tokens",
    visible: "total_output_tokens",
    thoughts: "total_thought_tokens",
    prompt_by_modality: "input_tokens_by_modality",
    visible_by_modality: "output_tokens_by_modality",
    tokens: "tokens",
};

/// Reads a usage object.
pub fn read_usage(usage: Raw<'_>) -> Option<Usage> {
    apart::read_usage(usage, &NAMES)
}
