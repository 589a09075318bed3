//! Converts streams between dialects.

use std::sync::Arc;

use bytes::Bytes;

use super::codecs::{Reader, Writer, read_response};
use super::observer::Observer;
use super::pictures;
use crate::byte_queue::ByteQueue;
use crate::canon::{AnswerContext, Block, Delta, Event};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::images::Pictures;
use crate::native::stream_body::StreamBody;
use crate::native::{
    AnswerSummary, ToolCallCounter, UnusableAnswer, is_end_mark, reports_unbillable_usage,
    terminal_failure,
};
use crate::sse::{Data, Frame, Splitter};

/// Converts a stream as it arrives. Relays use it like [`crate::native::Rewriter`].
#[derive(Debug)]
pub struct Transcoder {
    from: Dialect,
    to: Dialect,
    input_tokens: u64,
    splitter: Splitter,
    reader: Reader,
    writer: Writer,
    /// Reused, to keep its allocation.
    events: Vec<Event>,
    observer: Observer,
    /// Counts calls of built-in tools, if the caller asked for it.
    tools: Option<Box<ToolCallCounter>>,
    started: bool,
    /// Whether the open block is an image that the client's dialect cannot contain.
    skips_picture: bool,
    summary: AnswerSummary,
    model: Arc<str>,
    body: StreamBody,
}

impl Transcoder {
    /// A transcoder for one stream.
    pub fn new(from: Dialect, to: Dialect, context: AnswerContext) -> Self {
        Self {
            from,
            to,
            input_tokens: context.input_tokens,
            splitter: Splitter::default(),
            model: Arc::clone(&context.model),
            body: StreamBody::default(),
            reader: Reader::new(from, &context.model),
            writer: Writer::new(to, context),
            events: Vec::new(),
            observer: Observer::default(),
            tools: None,
            started: false,
            skips_picture: false,
            summary: AnswerSummary::default(),
        }
    }

    /// Also counts calls of built-in tools, for models that use these tools without being asked.
    #[must_use]
    pub fn watching_tools(mut self) -> Self {
        self.tools = Some(Box::default());
        self
    }

    /// Takes the bytes of one read and writes the converted events. Events written before a failure
    /// are valid.
    pub fn push(&mut self, chunk: Bytes, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if self.summary.ended {
            return Ok(());
        }
        let Some(chunk) = self.body.take(self.from, chunk)? else {
            return Ok(());
        };
        self.splitter.push(chunk);
        let result = self.relay(out);
        self.note();
        result
    }

    /// Handles the end of the upstream's stream. Returns an error unless the end mark has arrived or the
    /// dialect has no end mark.
    pub fn end(&mut self, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if self.summary.ended {
            return Ok(());
        }
        if let Some(answer) = self.body.take_answer()? {
            let result = self.answer(&answer, out);
            self.note();
            return result;
        }
        // An end mark counts even without a line end. Any other event was cut off.
        let rest = self.splitter.finish();
        let mut result = Ok(());
        match rest {
            Some(rest) if is_done(self.from, &rest) => result = self.frame(&rest, out),
            Some(rest) if rest.data() != Data::Absent => result = Err(UnusableAnswer::Unfinished),
            _ => {}
        }
        if result.is_ok() && !self.summary.ended {
            result = self.reader.end(&mut self.events);
            result = self.write(result, out);
        }
        self.note();
        match result {
            Ok(()) if !self.summary.ended => Err(UnusableAnswer::Unfinished),
            result => result,
        }
    }

    /// Ends the stream with the error event of the client's dialect. Nothing follows it.
    pub fn fail(&mut self, failure: &Failure, request_id: &str, out: &mut ByteQueue) {
        // Only the error event of Responses depends on earlier events.
        if self.to == Dialect::Responses && self.started {
            self.writer.event(Event::Failed(failure.clone()), out);
        } else {
            out.push(terminal_failure(self.to, failure, request_id));
        }
    }

    /// The number of bytes that wait until their event is complete.
    pub fn held_bytes(&self) -> usize {
        let answer = self.body.held_bytes();
        self.splitter.held_bytes().saturating_add(answer)
    }

    /// The summary of the stream so far.
    pub fn summary(&self) -> &AnswerSummary {
        &self.summary
    }

    /// Converts a whole answer to the stream that the client asked for.
    fn answer(&mut self, body: &[u8], out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if let Some(tools) = &mut self.tools {
            tools.count(self.from, body);
            self.summary.tools = tools.calls();
        }
        let response = read_response(self.from, body, &self.model)?;
        if response.usage.is_none() {
            self.summary.usage_malformed = reports_unbillable_usage(self.from, body);
        }
        self.events.extend(response.into_events());
        self.write(Ok(()), out)
    }

    fn relay(&mut self, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        while let Some(frame) = self.splitter.next_frame()? {
            self.frame(&frame, out)?;
            if self.summary.ended {
                return Ok(());
            }
        }
        // Some upstreams close the connection after the last data line, without the empty line that
        // ends an event.
        let pending = self.splitter.pending_data();
        if pending.is_some_and(|data| is_end_mark(self.from, data))
            && let Some(frame) = self.splitter.finish()
        {
            self.frame(&frame, out)?;
        }
        Ok(())
    }

    fn frame(&mut self, frame: &Frame, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if let Some(tools) = &mut self.tools {
            match frame.data() {
                Data::Absent => {}
                Data::Line(span) => {
                    tools.count(self.from, frame.bytes.get(span).unwrap_or_default());
                }
                Data::Lines(data) => tools.count(self.from, &data),
            }
            self.summary.tools = tools.calls();
        }
        let result = self.reader.frame(frame, &mut self.events);
        let is_usage = |event: &Event| matches!(event, Event::Usage(_));
        if !self.events.iter().any(is_usage) {
            self.summary.usage_malformed |= match frame.data() {
                Data::Absent => false,
                Data::Line(span) => {
                    let data = frame.bytes.get(span).unwrap_or_default();
                    reports_unbillable_usage(self.from, data)
                }
                Data::Lines(data) => reports_unbillable_usage(self.from, &data),
            };
        }
        self.write(result, out)
    }

    /// Writes the events that were read, then the reader's failure if there is one.
    fn write(
        &mut self,
        result: Result<(), UnusableAnswer>,
        out: &mut ByteQueue,
    ) -> Result<(), UnusableAnswer> {
        let mut events = std::mem::take(&mut self.events);
        let mut failed = None;
        for event in events.drain(..) {
            self.observer.event(&event);
            match event {
                Event::Failed(failure) => {
                    failed = Some(UnusableAnswer::Failure(failure));
                    break;
                }
                Event::Finish(stop) => {
                    self.finish_usage(out);
                    self.writer.event(Event::Finish(stop), out);
                    self.summary.ended = true;
                }
                event => {
                    self.started = true;
                    self.put(event, out);
                }
            }
        }
        events.clear();
        self.events = events;
        failed.map_or(result, Err)
    }

    /// Writes one event. A text replaces an image that the client's dialect cannot contain.
    fn put(&mut self, event: Event, out: &mut ByteQueue) {
        match event {
            Event::BlockStart(Block::Image { mime }) if !pictures::can_contain_images(self.to) => {
                self.skips_picture = true;
                self.writer.event(Event::BlockStart(Block::Text), out);
                let note = Delta::Text(pictures::note(&mime));
                self.writer.event(Event::Delta(note), out);
            }
            Event::Delta(_) if self.skips_picture => {}
            event => {
                self.skips_picture &= event != Event::BlockStop;
                self.writer.event(event, out);
            }
        }
    }

    /// Writes the usage at the end of a complete answer. The last report is then final, unless the reader has
    /// seen only interim reports. Without a final report, the client sees the count that it is charged for.
    fn finish_usage(&mut self, out: &mut ByteQueue) {
        if !self.reader.has_only_interim_usage() {
            self.summary.usage = self.observer.usage;
        }
        self.note();
        if self.summary.report().is_none() {
            let counted = self.summary.counted(self.input_tokens);
            self.writer.event(Event::Usage(counted), out);
        }
    }

    fn note(&mut self) {
        self.summary.content = self.observer.content;
        self.summary.output_tokens_counted = self.observer.tokens();
        self.summary.interim_usage = self.observer.usage;
        if self.observer.pictures > 0 {
            self.summary.pictures = Pictures::some(self.observer.pictures);
        }
    }
}

fn is_done(dialect: Dialect, frame: &Frame) -> bool {
    match frame.data() {
        Data::Absent => false,
        Data::Line(span) => {
            let data = frame.bytes.get(span);
            data.is_some_and(|data| is_end_mark(dialect, data))
        }
        Data::Lines(data) => is_end_mark(dialect, &data),
    }
}
