//! What is known of an answer, for billing and for the operator.

use crate::images::Pictures;
use crate::tool::ToolCalls;
use crate::usage::Usage;

/// What a stream has shown so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The last usage report.
    pub usage: Option<Usage>,
    /// The last report from before the end, which may not be charged as it is.
    pub interim_usage: Option<Usage>,
    /// Whether a report came that cannot be billed by, which is worth an alarm.
    pub usage_malformed: bool,
    /// Whether any output went by.
    pub content: bool,
    /// Output tokens counted over all deltas, reasoning included.
    pub output_tokens_counted: u64,
    /// Calls of built-in tools that went by; a usage report may count them better.
    pub tools: ToolCalls,
    /// Whether the end mark went by.
    pub ended: bool,
    /// Pictures that went by, if there are any or they are what was asked for.
    pub pictures: Option<Box<Pictures>>,
    /// Seconds of audio that were heard, rounded up, where that is what was asked for.
    pub seconds: Option<u64>,
    /// Words of the upstream about itself that were not shown; for the operator.
    pub withheld: Option<Box<str>>,
}

impl Seen {
    /// The usage report that the call is billed by, if there is one that leaves nothing out.
    pub fn report(&self) -> Option<Usage> {
        self.usage
            .filter(|usage| usage.is_report(self.has_output()) && !self.is_partial(*usage))
    }

    /// The usage report that the call is billed by. The part that half a report leaves out is the
    /// one that we counted: `input_tokens` at admission, or the output that went by.
    pub fn completed_report(&self, input_tokens: u64) -> Option<Usage> {
        let partial = self.usage.filter(|usage| self.is_partial(*usage));
        self.report().or_else(|| {
            partial?;
            Some(self.counted(input_tokens))
        })
    }

    /// Whether a report says 0 for the input or the output of an answer with text. Every request
    /// has input, so the upstream does not know that part.
    fn is_partial(&self, usage: Usage) -> bool {
        let is_partial = usage.total() > 0 && !usage.has_both_parts();
        // An absurd number is not half a report: it is refused as a whole.
        is_partial && usage.is_believable() && self.output_tokens_counted > 0
    }

    /// Whether output went by that cannot have been free.
    fn has_output(&self) -> bool {
        let pictures = self.pictures.as_deref();
        self.output_tokens_counted > 0
            || !self.tools.is_empty()
            || pictures.is_some_and(|pictures| pictures.delivered > 0)
    }

    /// What an answer without a whole usage report is charged for: the input as reported, at the
    /// end or before, otherwise as counted at admission; the output as far as it went by.
    pub fn counted(&self, input_tokens: u64) -> Usage {
        let partial = self.usage.filter(|usage| self.is_partial(*usage));
        let interim = self.interim_usage.filter(|usage| usage.is_report(true));
        let mut counted = partial.or(interim).unwrap_or_default();
        if counted.input_total() == 0 {
            counted.input = input_tokens;
        }
        if counted.output_total() == 0 || partial.is_none() {
            counted.output = counted.output.max(self.output_tokens_counted);
        }
        counted
    }
}
