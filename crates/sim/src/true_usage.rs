//! Defines the true usage of a call, which can differ from the reported usage. Tests compare a gateway's bill with it.

use serde::Serialize;

/// The true usage of one call, in classes that do not overlap, except that `output` includes `reasoning`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TrueUsage {
    /// Input tokens that were neither read from a cache nor written to it.
    pub fresh_input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// All output tokens, including reasoning.
    pub output: u64,
    pub reasoning: u64,
    pub tools: HostedTools,
}

/// The true usage of one WebSocket session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SessionUsage {
    /// The duration of the received audio, and of the sent audio, in microseconds.
    pub heard_us: u64,
    pub spoken_us: u64,
    /// The number of text items in the conversation.
    pub text_inputs: u64,
    /// The number of characters to speak.
    pub characters: u64,
}

/// The number of calls of each of the upstream's own tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HostedTools {
    pub searches: u64,
    pub fetches: u64,
    pub code_runs: u64,
    pub file_searches: u64,
}

impl HostedTools {
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }
}
