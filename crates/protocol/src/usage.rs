//! What an answer consumed, in classes that do not overlap.

/// Token counts of one call. No token is in two classes, so that each is priced once; only
/// `reasoning` is told beside them, and lies inside `output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Fresh text input.
    pub input: u64,
    /// Input read from a cache.
    pub cached_input: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// Text output, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// Image input.
    pub image_input: u64,
    /// Image output.
    pub image_output: u64,
    /// Audio input.
    pub audio_input: u64,
    /// Audio output.
    pub audio_output: u64,
}

impl Usage {
    /// All input tokens.
    pub fn input_total(&self) -> u64 {
        [
            self.input,
            self.cached_input,
            self.cache_write,
            self.image_input,
            self.audio_input,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// All output tokens.
    pub fn output_total(&self) -> u64 {
        self.output
            .saturating_add(self.image_output)
            .saturating_add(self.audio_output)
    }

    /// Input and output together.
    pub fn total(&self) -> u64 {
        self.input_total().saturating_add(self.output_total())
    }
}
