//! Whole answers: identity replaced, usage read, everything else as it came.

use bytes::Bytes;

use super::broken::Broken;
use super::changes;
use super::identity::{Identity, Written};
use super::inspection::{Form, Inspection};
use super::places::{Output, Places};
use super::seen::Seen;
use super::table::places_of;
use crate::byte_queue::ByteQueue;
use crate::count::Counter;
use crate::dialect::Dialect;
use crate::images::Pictures;
use crate::json::patch;
use crate::json::{Cursor, SyntaxError, utf8};
use crate::rejection;
use crate::tool::ToolCalls;
use crate::usage::Usage;

/// A whole answer, rewritten.
#[derive(Debug, Default)]
pub struct Answer {
    /// The bytes for the caller.
    pub pieces: ByteQueue,
    /// What the upstream reported.
    pub usage: Option<Usage>,
    /// Whether it reported something that cannot be billed by, which is worth an alarm.
    pub usage_malformed: bool,
    /// Output tokens as we count them, where the answer has no usage to believe.
    pub output_tokens_counted: u64,
    /// Seconds of audio that were heard, rounded up, where that is what was asked for.
    pub seconds: Option<u64>,
    /// Calls of built-in tools that it shows; the usage report may count them better.
    pub tools: ToolCalls,
    /// Pictures in it, if there are any or they are what was asked for.
    pub pictures: Option<Box<Pictures>>,
    /// Words of the upstream about itself that are not shown; for the operator.
    pub withheld: Option<Box<str>>,
}

impl Answer {
    /// What has gone by: all of it.
    pub fn seen(&self) -> Seen {
        Seen {
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

/// Puts our identity into an answer. An error body, an empty object and what is not JSON are no
/// answers, though they came with a 200.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the answer lives on in the pieces; a caller that kept it would keep it twice"
)]
pub fn rewrite_answer(
    dialect: Dialect,
    body: Bytes,
    identity: &Identity,
) -> Result<Answer, Broken> {
    let places = places_of(dialect);
    let text = utf8(&body)?;
    let (inspection, output) = look_at_answer(places, text, identity)?;
    let written = Written::new(identity, places.shown);
    let mut edits = changes::edits(places, text, &inspection, &output, &written)?;
    changes::close_emptied_objects(text, &mut edits);
    let (usage, usage_malformed) = (inspection.usage, inspection.usage_malformed);
    // Counting takes longer than reading, and as a rule the upstream has told.
    let told = usage.filter(|usage| usage.is_small() && usage.has_both_parts());
    let output_tokens_counted = match told {
        Some(_) => 0,
        None => look(places, text, Counter::default())?.1.counter.tokens(),
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

/// Looks through a text that should be a whole answer, and refuses it if it is none.
pub(super) fn look_at_answer<'a>(
    places: &Places,
    text: &'a str,
    identity: &Identity,
) -> Result<(Inspection<'a>, Output), Broken> {
    let (inspection, output) = look(places, text, Counter::idle())?;
    if output.failed || inspection.error.is_some() {
        let error = inspection.error.map_or(text, |error| error.text());
        let failure = rejection::read_event(error.as_bytes(), &identity.model);
        return Err(Broken::Failure(failure));
    }
    if !inspection.any {
        return Err(Broken::malformed("the answer is an empty object"));
    }
    if places.needs_items && !output.has_items {
        return Err(Broken::malformed("the answer has no output"));
    }
    Ok((inspection, output))
}

/// Looks through a whole answer.
fn look<'a>(
    places: &Places,
    text: &'a str,
    counter: Counter,
) -> Result<(Inspection<'a>, Output), SyntaxError> {
    let mut output = Output {
        counter,
        ..Output::default()
    };
    let mut cursor = Cursor::new(text);
    let inspection = Inspection::of_object(places, Form::Answer, &mut cursor, &mut output)?;
    cursor.end()?;
    Ok((inspection, output))
}
