//! What a call used in truth, whatever its answer told: the witness for a gateway's bill.

use serde::Serialize;

/// True figures of one call, in classes that do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TrueUsage {
    /// Input tokens neither read from a cache nor written to one.
    pub fresh_input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// All output tokens, reasoning included.
    pub output: u64,
    pub reasoning: u64,
    pub tools: HostedTools,
}

/// True figures of one session on a socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SessionUsage {
    /// Audio that came and that was sent, in microseconds of its sound.
    pub heard_us: u64,
    pub spoken_us: u64,
    /// Items of text in a conversation.
    pub text_inputs: u64,
    /// Characters to be spoken.
    pub characters: u64,
}

/// How often the upstream used tools of its own.
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
