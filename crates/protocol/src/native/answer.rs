//! Rewrites whole answers: replaces the identity, reads the usage, and leaves all other bytes as
//! they are.

use bytes::Bytes;

use super::dispatch::layout_of;
use super::edits;
use super::inspection::{Inspection, ObjectKind};
use crate::answer_layout::{AnswerLayout, Identity, IdentityJson, Output};
use crate::answer_summary::AnswerSummary;
use crate::byte_queue::ByteQueue;
use crate::count::Counter;
use crate::dialect::Dialect;
use crate::images::Pictures;
use crate::json::patch;
use crate::json::{Cursor, SyntaxError, utf8};
use crate::rejection;
use crate::tool::ToolCalls;
use crate::unusable_answer::UnusableAnswer;
use crate::usage::Usage;

/// A whole answer, rewritten.
#[derive(Debug, Default)]
pub struct Answer {
    /// The bytes for the client.
    pub pieces: ByteQueue,
    /// The usage that the upstream reported.
    pub usage: Option<Usage>,
    /// Whether the upstream reported usage that cannot be used for billing. This is worth an alarm.
    pub usage_malformed: bool,
    /// Output tokens by our own count. Used if the answer has no credible usage report.
    pub output_tokens_counted: u64,
    /// Seconds of transcribed audio, rounded up, if the call is a transcription.
    pub seconds: Option<u64>,
    /// Calls of built-in tools that the answer shows. The usage report may have a better count.
    pub tools: ToolCalls,
    /// The pictures in the answer, if it has any or if the call is for pictures.
    pub pictures: Option<Box<Pictures>>,
    /// Text that identifies the upstream. It is withheld from the client and noted in the call's
    /// record for the operator.
    pub withheld: Option<Box<str>>,
}

impl Answer {
    /// The summary of the whole answer.
    pub fn summary(&self) -> AnswerSummary {
        AnswerSummary {
            usage: self.usage,
            interim_usage: None,
            usage_malformed: self.usage_malformed,
            content: true,
            output_tokens_counted: self.output_tokens_counted,
            tools: self.tools,
            ended: true,
            pictures: self.pictures.clone(),
            seconds: self.seconds,
            withheld: self.withheld.clone(),
        }
    }
}

/// Puts our identity into an answer. Returns an error for an error body, even with status 200, and for a text
/// that is not JSON. Also returns an error for an object that is empty or lacks the output that its dialect
/// requires.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the answer lives on in the pieces; a caller that kept it would keep it twice"
)]
pub fn rewrite_answer(
    dialect: Dialect,
    body: Bytes,
    identity: &Identity,
) -> Result<Answer, UnusableAnswer> {
    let layout = layout_of(dialect);
    let text = utf8(&body)?;
    let (inspection, output) = inspect_answer(layout, text, identity)?;
    let identity_json = IdentityJson::new(identity, layout.fixed);
    let mut edits = edits::edits_of(layout, text, &inspection, &output, &identity_json)?;
    edits::close_emptied_objects(text, &mut edits);
    let (usage, usage_malformed) = (inspection.usage, inspection.usage_malformed);
    // Counting takes longer than reading. So the output is counted only if the report is missing, incomplete or
    // large.
    let complete_report = usage.filter(|usage| usage.is_small() && usage.has_both_parts());
    let output_tokens_counted = match complete_report {
        Some(_) => 0,
        None => inspect(layout, text, Counter::default())?
            .1
            .counter
            .tokens(),
    };
    let mut pieces = ByteQueue::new();
    patch::apply_to(&body, edits, &mut pieces);
    Ok(Answer {
        pieces,
        usage,
        usage_malformed,
        output_tokens_counted,
        seconds: None,
        tools: output.tools,
        pictures: Pictures::some(output.pictures),
        withheld: output.withheld().map(Into::into),
    })
}

/// Inspects a text that should be a whole answer, and returns an error if it is not one.
pub(super) fn inspect_answer<'a>(
    layout: &AnswerLayout,
    text: &'a str,
    identity: &Identity,
) -> Result<(Inspection<'a>, Output), UnusableAnswer> {
    let (inspection, output) = inspect(layout, text, Counter::idle())?;
    if output.failed || inspection.error.is_some() {
        let error = inspection.error.map_or(text, |error| error.text());
        let failure = rejection::read_event(error.as_bytes(), &identity.model);
        return Err(UnusableAnswer::Failure(failure));
    }
    if !inspection.has_members {
        return Err(UnusableAnswer::malformed("the answer is an empty object"));
    }
    if layout.needs_items && !output.has_items {
        return Err(UnusableAnswer::malformed("the answer has no output"));
    }
    Ok((inspection, output))
}

fn inspect<'a>(
    layout: &AnswerLayout,
    text: &'a str,
    counter: Counter,
) -> Result<(Inspection<'a>, Output), SyntaxError> {
    let mut output = Output {
        counter,
        ..Output::default()
    };
    let mut cursor = Cursor::new(text);
    let inspection = Inspection::of_object(layout, ObjectKind::Answer, &mut cursor, &mut output)?;
    cursor.end()?;
    Ok((inspection, output))
}
