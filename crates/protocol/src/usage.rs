//! Token counts of a call, in classes that do not overlap.

pub(crate) mod costs;
mod count;
pub(crate) mod separate_thoughts;

use crate::tool::ToolCalls;

pub(crate) use count::count;

/// Token counts of one call. No token is in two classes, so each is priced once. `reasoning` is an
/// exception: it is a part of `output` that is reported but not priced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Text input that is not cached.
    pub input: u64,
    /// Input read from a cache.
    pub cached_input: u64,
    /// Input written to a cache, except for `cache_write_1h`.
    pub cache_write: u64,
    /// Input written to a cache that keeps it for an hour.
    pub cache_write_1h: u64,
    /// Text output, including reasoning.
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
    /// Calls of built-in tools, if the report counts them.
    pub tools: ToolCalls,
    /// The tokens used to shorten the conversation before the answer. They are billed in addition to the other
    /// counts. Converted routes do not show them, because they cannot ask for compaction.
    pub compaction: Compaction,
}

/// Token counts of the summaries by which an upstream shortens a conversation during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compaction {
    pub input: u64,
    pub cached_input: u64,
    pub cache_write: u64,
    pub cache_write_1h: u64,
    pub output: u64,
}

impl Compaction {
    fn total(&self) -> u64 {
        [
            self.input,
            self.cached_input,
            self.cache_write,
            self.cache_write_1h,
            self.output,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Adds the counts of one more summary.
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in [
            (&mut self.input, other.input),
            (&mut self.cached_input, other.cached_input),
            (&mut self.cache_write, other.cache_write),
            (&mut self.cache_write_1h, other.cache_write_1h),
            (&mut self.output, other.output),
        ] {
            *count = count.saturating_add(more);
        }
    }
}

impl Usage {
    /// All input tokens.
    pub fn input_total(&self) -> u64 {
        [
            self.input,
            self.cached_input,
            self.cache_write,
            self.cache_write_1h,
            self.image_input,
            self.audio_input,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// All input written to caches.
    pub(crate) fn cache_writes(&self) -> u64 {
        self.cache_write.saturating_add(self.cache_write_1h)
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

    /// Whether the report has information. Some upstreams send zeros for unknown counts, so zeros are
    /// not a report if there is output.
    pub(crate) fn is_report(&self, has_output: bool) -> bool {
        self.total() > 0 || !has_output
    }

    /// Whether the report counts input as well as output.
    pub(crate) fn has_both_parts(&self) -> bool {
        self.input_total() > 0 && self.output_total() > 0
    }

    /// Whether one response can have used this much.
    pub(crate) fn is_believable(&self) -> bool {
        const TOKENS_MAX: u64 = 1 << 22;
        self.total().saturating_add(self.compaction.total()) <= TOKENS_MAX
    }

    /// Whether the report is within the limits of every model. To judge a larger report, our own
    /// count is needed.
    pub(crate) fn is_small(&self) -> bool {
        const TOKENS_MAX: u64 = 1 << 14;
        self.total().saturating_add(self.compaction.total()) <= TOKENS_MAX
    }
}

/// The counts of a report whose totals include the special classes, as in Chat Completions and
/// Responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InclusiveCounts {
    /// All input.
    pub input: u64,
    /// The part of the input read from a cache.
    pub cached_input: u64,
    /// The part of the input written to a cache.
    pub cache_write: u64,
    /// The part of the input that was images.
    pub image_input: u64,
    /// The part of the input that was audio.
    pub audio_input: u64,
    /// All output.
    pub output: u64,
    /// The part of the output that was reasoning.
    pub reasoning: u64,
    /// The part of the output that was images.
    pub image_output: u64,
    /// The part of the output that was audio.
    pub audio_output: u64,
    /// Calls of built-in tools.
    pub tools: ToolCalls,
}

impl From<InclusiveCounts> for Usage {
    /// Subtracts each part from the rest of its total. So the classes never add up to more than the total,
    /// even if the parts are wrong.
    fn from(report: InclusiveCounts) -> Self {
        let mut input = report.input;
        let mut output = report.output;
        Self {
            cached_input: take(&mut input, report.cached_input),
            cache_write: take(&mut input, report.cache_write),
            cache_write_1h: 0,
            audio_input: take(&mut input, report.audio_input),
            image_input: take(&mut input, report.image_input),
            input,
            audio_output: take(&mut output, report.audio_output),
            image_output: take(&mut output, report.image_output),
            reasoning: report.reasoning.min(output),
            output,
            tools: report.tools,
            compaction: Compaction::default(),
        }
    }
}

fn take(rest: &mut u64, part: u64) -> u64 {
    let part = part.min(*rest);
    *rest -= part;
    part
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn classes_are_taken_out_of_their_totals() {
        let usage = Usage::from(InclusiveCounts {
            input: 100,
            cached_input: 60,
            cache_write: 10,
            audio_input: 5,
            output: 50,
            reasoning: 30,
            audio_output: 4,
            ..InclusiveCounts::default()
        });
        let expected = Usage {
            input: 25,
            cached_input: 60,
            cache_write: 10,
            audio_input: 5,
            output: 46,
            reasoning: 30,
            audio_output: 4,
            ..Usage::default()
        };
        assert_eq!(usage, expected);
        assert_eq!(usage.total(), 150);
    }

    proptest! {
        #[test]
        fn totals_are_kept_whatever_the_parts_claim(
            input in 0..1000_u64, cached_input in 0..1000_u64, cache_write in any::<u64>(),
            image_input in 0..1000_u64, output in 0..1000_u64, reasoning in any::<u64>(),
            audio_output in 0..2000_u64,
        ) {
            let usage = Usage::from(InclusiveCounts {
                input, cached_input, cache_write, image_input, output, reasoning, audio_output,
                ..InclusiveCounts::default()
            });
            prop_assert_eq!(usage.input_total(), input);
            prop_assert_eq!(usage.output_total(), output);
            prop_assert!(usage.reasoning <= usage.output);
        }
    }
}
