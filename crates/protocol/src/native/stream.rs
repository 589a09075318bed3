//! Rewrites streams: replaces the identity in every event, reads the usage, and watches for the end mark.

use std::ops::Range;

use bytes::Bytes;

use super::answer::inspect_answer;
use super::common_prefix::CommonPrefix;
use super::dispatch::{layout_of, write_events_of};
use super::failure::terminal_failure;
use super::inspection::Inspection;
use super::stream_body::StreamBody;
use crate::answer_layout::{
    AnswerLayout, Events, Identity, IdentityJson, IdentitySet, Items, Output, StreamEnd,
};
use crate::answer_summary::AnswerSummary;
use crate::byte_queue::ByteQueue;
use crate::chat;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::images::Pictures;
use crate::json::{Cursor, utf8};
use crate::responses;
use crate::sse::{Data, Frame, Splitter};
use crate::unusable_answer::UnusableAnswer;

mod inspect_event;
mod write_event;

/// The maximum buffer space that is reserved for the events of one read, so that they are sent
/// together.
const JOINED_BYTES_MAX: usize = 16 << 10;

/// Replaces comments of an upstream, because their text may identify it.
pub(crate) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Rewrites a stream as it arrives.
#[derive(Debug)]
pub struct Rewriter {
    dialect: Dialect,
    layout: &'static AnswerLayout,
    identity: Identity,
    identity_json: IdentityJson,
    body: StreamBody,
    splitter: Splitter,
    output: Output,
    prefix: CommonPrefix,
    required_identity: IdentitySet,
    /// Whether an event lacked the members that say where in the stream it belongs.
    has_gaps: bool,
    items: Items,
    summary: AnswerSummary,
    /// The input by our count, if we write the usage chunk ourselves.
    input_tokens: Option<u64>,
}

impl Rewriter {
    /// A rewriter for one stream.
    pub fn new(dialect: Dialect, identity: Identity, include_usage: bool) -> Self {
        let layout = layout_of(dialect);
        Self {
            dialect,
            layout,
            identity_json: IdentityJson::new(&identity, layout.fixed),
            identity,
            body: StreamBody::default(),
            splitter: Splitter::default(),
            output: Output {
                hides_usage: layout.usage_event && !include_usage,
                ..Output::default()
            },
            prefix: CommonPrefix::default(),
            required_identity: layout.required_identity(),
            has_gaps: false,
            items: Items::default(),
            summary: AnswerSummary::default(),
            input_tokens: None,
        }
    }

    /// Prepares for an upstream that reports no usage, because it refuses or ignores our request for usage. A
    /// chat client that asked for the usage chunk then gets a chunk with our own count, and is charged for
    /// that count.
    #[must_use]
    pub fn counting_usage(mut self, input_tokens: u64) -> Self {
        let is_promised = self.layout.usage_event && !self.output.hides_usage;
        self.input_tokens = is_promised.then_some(input_tokens);
        self.output.owes_usage = is_promised;
        self
    }

    /// Takes the bytes of one read and writes the complete events in them to `out`. After an error,
    /// the events that `out` already contains are still valid.
    pub fn push(&mut self, chunk: Bytes, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if self.summary.ended {
            return Ok(());
        }
        let Some(chunk) = self.body.take(self.dialect, chunk)? else {
            return Ok(());
        };
        out.reserve(chunk.len().min(JOINED_BYTES_MAX));
        self.splitter.push(chunk);
        let result = self.relay_frames(out);
        self.update_summary();
        result
    }

    /// Handles the end of the upstream's stream. Returns an error unless the stream is complete.
    pub fn end(&mut self, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if self.summary.ended {
            return Ok(());
        }
        if let Some(answer) = self.body.take_answer()? {
            let result = self.relay_answer(&answer, out);
            self.update_summary();
            return result;
        }
        let rest = self.splitter.finish();
        let has_end_mark = match rest.as_ref().map_or(Data::Absent, Frame::data) {
            Data::Absent => {
                self.summary.ended = self.output.end >= StreamEnd::Closable;
                false
            }
            // An end mark counts even without its line end. Any other event without a line end was
            // cut off.
            Data::Line(span) => {
                let data = rest.as_ref().and_then(|rest| rest.bytes.get(span));
                data.is_some_and(|data| self.is_end_mark(data))
            }
            Data::Lines(data) => self.is_end_mark(&data),
        };
        if has_end_mark {
            self.finish(out);
        } else if self.summary.ended {
            self.write_usage_chunk(out);
        }
        if self.summary.ended {
            Ok(())
        } else {
            Err(UnusableAnswer::Unfinished)
        }
    }

    /// Rewrites a whole answer as the stream that the client asked for.
    #[cold]
    fn relay_answer(&mut self, answer: &[u8], out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        let text = utf8(answer)?;
        inspect_answer(self.layout, text, &self.identity)?;
        let value = Cursor::new(text).value()?;
        let write_events = write_events_of(self.dialect);
        let mut relay = |event| {
            self.splitter.push(event);
            self.relay_frames(out)
        };
        write_events(value, &mut Events::new(&mut relay))?;
        // The answer is complete, even if its chunk does not say so.
        self.summary.ended = true;
        self.summary.usage = self.summary.usage.or(self.summary.interim_usage);
        Ok(())
    }

    /// Ends the stream with the error event of its dialect. Nothing follows it.
    pub fn fail(&mut self, failure: &Failure, request_id: &str, out: &mut ByteQueue) {
        out.push(match self.dialect {
            Dialect::Responses => Bytes::from(responses::write_failure_event(
                failure,
                &self.identity,
                self.output.opening,
            )),
            dialect => terminal_failure(dialect, failure, request_id),
        });
    }

    /// The number of bytes that wait for the end of their event or of the whole answer. The bytes
    /// of a whole answer are counted once for each time that its stream repeats them, because the
    /// stream is written at once.
    pub fn held_bytes(&self) -> usize {
        let answer = self.body.held_bytes();
        let copies = match self.dialect {
            Dialect::Responses => 6,
            Dialect::Chat | Dialect::Messages | Dialect::Generate | Dialect::Interactions => 2,
        };
        let waiting = self.splitter.held_bytes();
        waiting.saturating_add(answer.saturating_mul(copies))
    }

    /// The summary of the stream so far.
    pub fn summary(&self) -> &AnswerSummary {
        &self.summary
    }

    /// Copies the state of the output to the summary.
    fn update_summary(&mut self) {
        self.summary.content = self.output.content;
        self.summary.output_tokens_counted = self.output.counter.tokens();
        self.summary.tools = self.output.tools;
        if self.output.pictures > 0 {
            self.summary.pictures = Pictures::some(self.output.pictures);
        }
        if self.output.withheld() != self.summary.withheld.as_deref() {
            self.summary.withheld = self.output.withheld().map(Into::into);
        }
    }

    fn relay_frames(&mut self, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        while let Some(frame) = self.splitter.next_frame()? {
            let opening = self.output.opening;
            if let Err(refused) = self.relay_frame(&frame, out) {
                // The client does not get this event. So the event that ends the stream continues from the last
                // relayed event.
                self.output.opening = opening;
                return Err(refused);
            }
            self.summary.ended |= self.output.end == StreamEnd::Reached;
            if self.summary.ended {
                return Ok(());
            }
        }
        // Some upstreams close after the line that ends the stream, without a blank line.
        if self
            .splitter
            .pending_data()
            .is_some_and(|data| self.is_end_mark(data))
        {
            self.finish(out);
        }
        Ok(())
    }

    fn relay_frame(&mut self, frame: &Frame, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if self.layout.data_only && !frame.is_plain_data() {
            let Some(plain) = frame.to_plain_data() else {
                return Ok(());
            };
            self.refuse_error_event(frame, plain.first_data().unwrap_or_default())?;
            return self.relay_frame(&plain, out);
        }
        if frame
            .first_data()
            .is_some_and(|data| self.is_end_mark(data))
        {
            self.finish(out);
            return Ok(());
        }
        match frame.data() {
            // A frame with fields but without data is dropped, because some clients take it for an
            // event and fail. A comment is replaced, because it keeps the connection alive.
            Data::Absent if frame.has_fields() || frame.bytes.trim_ascii().is_empty() => Ok(()),
            Data::Absent => {
                out.copy(KEEP_ALIVE);
                Ok(())
            }
            _ if !frame.is_without_metadata() => self.relay_frame(&frame.without_metadata(), out),
            Data::Line(span) if frame.is_one_line() => self.relay_line(frame, span, out),
            Data::Line(span) => {
                let data = frame.bytes.get(span.clone()).unwrap_or_default();
                if self.is_end_mark(data) {
                    self.finish(out);
                    return Ok(());
                }
                self.refuse_error_event(frame, data)?;
                let inspection = self.inspect(Some(frame), data)?;
                self.write_event(frame, span.start, data, &inspection, out)
            }
            Data::Lines(masked) if self.is_end_mark(&masked) => {
                self.finish(out);
                Ok(())
            }
            Data::Lines(masked) => {
                self.refuse_error_event(frame, &masked)?;
                let inspection = self.inspect(Some(frame), &masked)?;
                self.write_event(frame, 0, &masked, &inspection, out)
            }
        }
    }

    /// Handles the common case, one line of data. The events of a stream start with the same bytes,
    /// so the prefix that they share is neither parsed nor assembled again.
    fn relay_line(
        &mut self,
        frame: &Frame,
        span: Range<usize>,
        out: &mut ByteQueue,
    ) -> Result<(), UnusableAnswer> {
        let bytes = &frame.bytes;
        let known = self.prefix.length_in(bytes);
        if known == 0 {
            let data = bytes.get(span.clone()).unwrap_or_default();
            let inspection = self.inspect(None, data)?;
            if let Some(end) = inspection.plain_start()
                && !self.needs_edits(frame, &inspection, IdentitySet::default())
            {
                self.prefix
                    .learn(bytes, span.start, end, &inspection, &self.identity_json);
            }
            return self.write_event(frame, span.start, data, &inspection, out);
        }
        let text = utf8(bytes.get(known..span.end).unwrap_or_default())?;
        let mut cursor = Cursor::after_member(text, 0);
        let inspection = Inspection::of_rest(self.layout, &mut cursor, &mut self.output)?;
        cursor.end()?;
        self.record(&inspection, text)?;
        if self.is_withheld(&inspection) {
            return Ok(());
        }
        if self.needs_edits(frame, &inspection, self.prefix.found) {
            let data = bytes.get(span.clone()).unwrap_or_default();
            return self.write_edited(frame, span.start, data, out);
        }
        out.copy(&self.prefix.sent);
        self.write_from(frame, known, (known, text), &inspection, out)
    }

    fn is_end_mark(&self, data: &[u8]) -> bool {
        self.layout.is_end_mark(data)
    }

    /// Writes our own end mark, because the upstream's mark may have arrived without its blank line.
    fn finish(&mut self, out: &mut ByteQueue) {
        self.summary.ended = true;
        self.write_usage_chunk(out);
        let end_mark = self.layout.end_mark.map_or("", |mark| mark.frame);
        out.copy(end_mark.as_bytes());
    }

    /// Writes the usage chunk that the client asked for, if the upstream has not reported usage that can be used.
    fn write_usage_chunk(&self, out: &mut ByteQueue) {
        if let Some(input_tokens) = self.input_tokens
            && self.summary.usage.is_none()
        {
            let counted = AnswerSummary {
                output_tokens_counted: self.output.counter.tokens(),
                ..self.summary.clone()
            };
            let usage = counted.counted(input_tokens);
            out.push(chat::write_usage_chunk(&self.identity, &usage).into());
        }
    }
}
