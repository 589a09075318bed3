//! `usageMetadata`.

use crate::apart::{self, Names};
use crate::json::Raw;
use crate::usage::Usage;

const NAMES: Names = Names {
    prompt: "promptTokenCount",
    tool_use: "toolUsePromptTokenCount",
    cached: "cachedContentTokenCount",
    visible: "candidatesTokenCount",
    thoughts: "thoughtsTokenCount",
    prompt_by_modality: "promptTokensDetails",
    visible_by_modality: "candidatesTokensDetails",
    tokens: "tokenCount",
};

/// Reads a usage object.
pub fn read_usage(usage: Raw<'_>) -> Option<Usage> {
    apart::read_usage(usage, &NAMES)
}
