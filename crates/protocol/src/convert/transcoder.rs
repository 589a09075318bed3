//! Streams, from one dialect into another.

use std::sync::Arc;

use bytes::Bytes;

use super::codecs::{Reader, Writer, read_response};
use super::observer::Observer;
use super::pictures;
use crate::byte_queue::ByteQueue;
use crate::canon::{Block, Delta, Echo, Event};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::images::Pictures;
use crate::native::{
    Broken, Seen, ToolWatch, is_end_mark, reports_unbillable_usage, terminal_failure,
};
use crate::sse::{Data, EVENT_BYTES_MAX, Frame, Splitter};

/// Converts a stream as it comes. Its face is that of [`crate::native::Rewriter`].
#[derive(Debug)]
pub struct Transcoder {
    from: Dialect,
    to: Dialect,
    input_tokens: u64,
    splitter: Splitter,
    reader: Reader,
    writer: Writer,
    /// Kept for its room.
    events: Vec<Event>,
    observer: Observer,
    /// Only where somebody wants to know.
    tools: Option<Box<ToolWatch>>,
    started: bool,
    /// Whether a picture goes by that the caller's dialect cannot hold.
    skips_picture: bool,
    seen: Seen,
    model: Arc<str>,
    body: Body,
}

/// What the upstream's bytes are.
#[derive(Debug, Default)]
enum Body {
    /// Nothing but white space has come.
    #[default]
    Unknown,
    Events,
    /// A whole answer: the upstream does not stream. It is told when all of it is there.
    Answer(Vec<u8>),
}

impl Transcoder {
    /// A transcoder for one stream.
    pub fn new(from: Dialect, to: Dialect, echo: Echo) -> Self {
        Self {
            from,
            to,
            input_tokens: echo.input_tokens,
            splitter: Splitter::default(),
            model: Arc::clone(&echo.model),
            body: Body::default(),
            reader: Reader::new(from, &echo.model),
            writer: Writer::new(to, echo),
            events: Vec::new(),
            observer: Observer::default(),
            tools: None,
            started: false,
            skips_picture: false,
            seen: Seen::default(),
        }
    }

    /// Counts calls of built-in tools too: nothing asked for them, but some models use them
    /// unasked.
    #[must_use]
    pub fn watching_tools(mut self) -> Self {
        self.tools = Some(Box::default());
        self
    }

    /// Takes what one read brought and puts out what it says. When it fails, what was put out
    /// before is still good.
    pub fn push(&mut self, chunk: Bytes, out: &mut ByteQueue) -> Result<(), Broken> {
        if self.seen.ended {
            return Ok(());
        }
        if let Body::Unknown = self.body {
            self.body = match chunk.trim_ascii_start().first() {
                None => Body::Unknown,
                Some(b'{') => Body::Answer(Vec::new()),
                Some(_) => Body::Events,
            };
        }
        if let Body::Answer(answer) = &mut self.body {
            answer.extend_from_slice(&chunk);
            let is_too_large = answer.len() > EVENT_BYTES_MAX;
            return if is_too_large {
                Err(Broken::TooLarge(EVENT_BYTES_MAX))
            } else {
                Ok(())
            };
        }
        self.splitter.push(chunk);
        let result = self.relay(out);
        self.note();
        result
    }

    /// The upstream has closed the stream: an error, unless that is an end in its dialect or its
    /// end mark went by.
    pub fn end(&mut self, out: &mut ByteQueue) -> Result<(), Broken> {
        if self.seen.ended {
            return Ok(());
        }
        if let Body::Answer(answer) = std::mem::take(&mut self.body) {
            let result = self.answer(&answer, out);
            self.note();
            return result;
        }
        // An end mark without a line end is one all the same; another event was cut off.
        let rest = self.splitter.finish();
        let mut result = Ok(());
        match rest {
            Some(rest) if is_done(self.from, &rest) => result = self.frame(&rest, out),
            Some(rest) if rest.data() != Data::Absent => result = Err(Broken::Unfinished),
            _ => {}
        }
        if result.is_ok() && !self.seen.ended {
            result = self.reader.end(&mut self.events);
            result = self.write(result, out);
        }
        self.note();
        match result {
            Ok(()) if !self.seen.ended => Err(Broken::Unfinished),
            result => result,
        }
    }

    /// Ends the stream with the error event of the caller's dialect. Nothing follows it.
    pub fn fail(&mut self, failure: &Failure, request_id: &str, out: &mut ByteQueue) {
        // Only this dialect's error depends on what was said before.
        if self.to == Dialect::Responses && self.started {
            self.writer.event(Event::Failed(failure.clone()), out);
        } else {
            out.push(terminal_failure(self.to, failure, request_id));
        }
    }

    /// Bytes that wait for the end of their event.
    pub fn held_bytes(&self) -> usize {
        match &self.body {
            Body::Answer(answer) => answer.len(),
            Body::Unknown | Body::Events => self.splitter.held_bytes(),
        }
    }

    /// What has gone by.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Tells a whole answer as the stream that was asked for.
    fn answer(&mut self, body: &[u8], out: &mut ByteQueue) -> Result<(), Broken> {
        if let Some(tools) = &mut self.tools {
            tools.look(self.from, body);
            self.seen.tools = tools.calls();
        }
        let response = read_response(self.from, body, &self.model)?;
        if response.usage.is_none() {
            self.seen.usage_malformed = reports_unbillable_usage(self.from, body);
        }
        self.events.extend(response.unfold());
        self.write(Ok(()), out)
    }

    fn relay(&mut self, out: &mut ByteQueue) -> Result<(), Broken> {
        while let Some(frame) = self.splitter.next_frame()? {
            self.frame(&frame, out)?;
            if self.seen.ended {
                return Ok(());
            }
        }
        // Some upstreams close behind the line that ends the stream, or not even then.
        let pending = self.splitter.pending_data();
        if pending.is_some_and(|data| is_end_mark(self.from, data))
            && let Some(frame) = self.splitter.finish()
        {
            self.frame(&frame, out)?;
        }
        Ok(())
    }

    fn frame(&mut self, frame: &Frame, out: &mut ByteQueue) -> Result<(), Broken> {
        if let Some(tools) = &mut self.tools {
            match frame.data() {
                Data::Absent => {}
                Data::Line(span) => {
                    tools.look(self.from, frame.bytes.get(span).unwrap_or_default());
                }
                Data::Lines(data) => tools.look(self.from, &data),
            }
            self.seen.tools = tools.calls();
        }
        let result = self.reader.frame(frame, &mut self.events);
        let is_told = |event: &Event| matches!(event, Event::Usage(_));
        if !self.events.iter().any(is_told) {
            self.seen.usage_malformed |= match frame.data() {
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

    /// Writes the events that have been read. The reader's own failure comes behind them.
    fn write(&mut self, result: Result<(), Broken>, out: &mut ByteQueue) -> Result<(), Broken> {
        let mut events = std::mem::take(&mut self.events);
        let mut failed = None;
        for event in events.drain(..) {
            self.observer.event(&event);
            match event {
                Event::Failed(failure) => {
                    failed = Some(Broken::Failure(failure));
                    break;
                }
                Event::Finish(stop) => {
                    self.finish_usage(out);
                    self.writer.event(Event::Finish(stop), out);
                    self.seen.ended = true;
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

    /// Writes one event. A picture without a place is named.
    fn put(&mut self, event: Event, out: &mut ByteQueue) {
        match event {
            Event::BlockStart(Block::Image { mime }) if !pictures::carries(self.to) => {
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

    /// The answer is whole: its last report is final. An answer without one tells the caller what
    /// it is charged by.
    fn finish_usage(&mut self, out: &mut ByteQueue) {
        self.seen.usage = self.observer.usage;
        self.note();
        if self.seen.report().is_none() {
            let counted = self.seen.counted(self.input_tokens);
            self.writer.event(Event::Usage(counted), out);
        }
    }

    fn note(&mut self) {
        self.seen.content = self.observer.content;
        self.seen.output_tokens_counted = self.observer.tokens();
        self.seen.interim_usage = self.observer.usage;
        if self.observer.pictures > 0 {
            self.seen.pictures = Pictures::some(self.observer.pictures);
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
