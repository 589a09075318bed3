//! The summary of an answer, for billing and for the operator.

use crate::images::Pictures;
use crate::tool::ToolCalls;
use crate::usage::Usage;

/// The contents of an answer, or of a stream so far, that matter for billing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerSummary {
    /// The last usage report that is not interim.
    pub usage: Option<Usage>,
    /// The last interim report of a stream. Billing combines it with our own counts.
    pub interim_usage: Option<Usage>,
    /// Whether there was a report that cannot be used for billing. This is worth an alert.
    pub usage_malformed: bool,
    /// Whether there was any output.
    pub content: bool,
    /// Output tokens, counted over all deltas, including reasoning.
    pub output_tokens_counted: u64,
    /// Calls of built-in tools in the output. A usage report may have a better count.
    pub tools: ToolCalls,
    /// Whether the end mark was received.
    pub ended: bool,
    /// The pictures in the output, if there are any or if the call is for pictures.
    pub pictures: Option<Box<Pictures>>,
    /// Seconds of transcribed audio, rounded up, if the call is a transcription.
    pub seconds: Option<u64>,
    /// Text in which the upstream identifies itself. It is kept for the operator and hidden from
    /// the client.
    pub withheld: Option<Box<str>>,
}

impl AnswerSummary {
    /// The usage report for billing, if there is a complete one.
    pub fn report(&self) -> Option<Usage> {
        self.usage
            .filter(|usage| usage.is_report(self.has_output()) && !self.is_partial(*usage))
    }

    /// The usage report for billing. If the report lacks the input or the output, our own count
    /// replaces the missing part: `input_tokens` from admission, or the count of the relayed output.
    pub fn completed_report(&self, input_tokens: u64) -> Option<Usage> {
        let partial = self.usage.filter(|usage| self.is_partial(*usage));
        self.report().or_else(|| {
            partial?;
            Some(self.counted(input_tokens))
        })
    }

    /// Whether a report says 0 for the input or the output of an answer that has text. Neither can
    /// be 0, so the upstream did not count that part.
    fn is_partial(&self, usage: Usage) -> bool {
        let is_partial = usage.total() > 0 && !usage.has_both_parts();
        // An absurd number does not make a report partial. The whole report is rejected.
        is_partial && usage.is_believable() && self.output_tokens_counted > 0
    }

    /// Whether there was output that a correct report cannot count as 0.
    fn has_output(&self) -> bool {
        let pictures = self.pictures.as_deref();
        self.output_tokens_counted > 0
            || !self.tools.is_empty()
            || pictures.is_some_and(|pictures| pictures.begun() > 0)
    }

    /// The usage to charge if there is no complete report. A partial final report is completed with our own
    /// counts. Otherwise the input is that of an interim report, or our count at admission. The output is the
    /// larger of the interim report and our count.
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
