//! Counts the true tokens of a call, which each of the two protocols reports in its own format.

use crate::fault::Script;
use crate::model::{MediaKind, Output, Prompt};
use crate::true_usage::{HostedTools, TrueUsage};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TokenCounts {
    pub(crate) input: u64,
    pub(crate) input_images: u64,
    pub(crate) input_sound: u64,
    pub(crate) cached: u64,
    pub(crate) tool_use: u64,
    /// The visible output, including pictures.
    pub(crate) output: u64,
    pub(crate) output_images: u64,
    pub(crate) thoughts: u64,
    pub(crate) hosted: HostedTools,
}

impl TokenCounts {
    /// Counts the tokens of a call. `picture_tokens` is the number of tokens of one output's picture.
    pub(crate) fn of(
        prompt: &Prompt,
        outputs: &[Output],
        picture_tokens: u64,
        script: &Script,
    ) -> Self {
        let tokens = prompt.tokens();
        let cached = script.cached.unwrap_or_else(|| prompt.cached_tokens());
        let thoughts = outputs.iter().map(|output| output.reasoning_tokens).sum();
        let all: u64 = outputs.iter().map(|output| output.tokens).sum();
        // An output with function calls has no picture.
        let painted = outputs.iter().filter(|output| output.calls.is_empty());
        let output_images = picture_tokens * painted.count() as u64;
        Self {
            input: tokens,
            input_images: prompt.media_tokens(MediaKind::Image),
            input_sound: prompt.media_tokens(MediaKind::Sound),
            cached: cached.min(tokens),
            tool_use: script.google.tool_use_tokens.unwrap_or(0),
            output: all.saturating_sub(thoughts) + output_images,
            output_images,
            thoughts,
            hosted: HostedTools {
                code_runs: 0,
                file_searches: 0,
                ..script.hosted
            },
        }
    }

    /// The usage by class. There is no class for pictures or audio, so their tokens are part of input and output.
    pub(crate) fn true_usage(self) -> TrueUsage {
        TrueUsage {
            fresh_input: self.input + self.tool_use - self.cached,
            cache_read: self.cached,
            cache_write: 0,
            output: self.output + self.thoughts,
            reasoning: self.thoughts,
            tools: self.hosted,
        }
    }

    /// The counts of a call whose prompt was blocked.
    pub(crate) fn unanswered(self) -> Self {
        self.so_far(0)
    }

    /// The counts after this many output tokens have been sent. Thoughts are sent first.
    pub(crate) fn so_far(self, given: u64) -> Self {
        let thoughts = self.thoughts.min(given);
        Self {
            output: (given - thoughts).min(self.output),
            output_images: 0,
            thoughts,
            ..self
        }
    }

    pub(crate) fn input_text(&self) -> u64 {
        let media = self.input_images + self.input_sound;
        self.input.saturating_sub(media)
    }

    pub(crate) fn total(&self) -> u64 {
        self.input + self.tool_use + self.output + self.thoughts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_counted_before_words() {
        let counts = TokenCounts {
            input: 10,
            output: 20,
            thoughts: 5,
            ..TokenCounts::default()
        };
        for (given, thoughts, output) in [(0, 0, 0), (3, 3, 0), (7, 5, 2), (99, 5, 20)] {
            let so_far = counts.so_far(given);
            assert_eq!((so_far.thoughts, so_far.output), (thoughts, output));
        }
        assert_eq!(counts.total(), 35);
        assert_eq!(counts.unanswered().total(), 10);
    }
}
