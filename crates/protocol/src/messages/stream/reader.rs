//! Reads the events of a stream into the common form.
//!
//! Blocks usually arrive one after the other. If an upstream lets them overlap, the first block is passed on at
//! once, and the other blocks wait until the first block is closed.

use std::collections::VecDeque;

use crate::canon::{Block, Delta, Event};
use crate::json::{Cursor, Integer, Raw, utf8};
use crate::messages::fields::Fields;
use crate::messages::response::stop::Ending;
use crate::messages::response::wire::{self, Source, WireBlock, length};
use crate::messages::usage::{has_output, read_usage};
use crate::rejection;
use crate::sse::{Data, Frame};
use crate::unusable_answer::UnusableAnswer;
use crate::usage::Usage;

/// Reads one stream.
#[derive(Debug)]
pub struct Reader {
    /// The public model id, which marks the origin of signatures.
    model: Box<str>,
    state: State,
    /// Blocks that are not completely passed on. The first one is passed on at once.
    open: VecDeque<OpenBlock>,
    has_calls: bool,
    usage: Option<Usage>,
    /// Whether usage was reported at the end of the message. Reports at its start cannot know the
    /// output.
    has_final_usage: bool,
    /// Whether usage has not been passed on yet.
    unreported: bool,
    ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Silent,
    Begun,
    Finished,
}

#[derive(Debug)]
struct OpenBlock {
    index: Option<u64>,
    /// `None` for a type of block that only this dialect has.
    block: Option<Block>,
    /// Text or arguments that are not passed on yet.
    text: String,
    /// Arguments that came with the start. They are used if no deltas follow.
    input: Option<String>,
    value: Option<String>,
    citations: Vec<Source>,
    characters: u64,
    closed: bool,
    is_started: bool,
}

impl Reader {
    /// A reader for one stream of the model with this public id.
    pub fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            state: State::Silent,
            open: VecDeque::new(),
            has_calls: false,
            usage: None,
            has_final_usage: false,
            unreported: false,
            ending: Ending::default(),
        }
    }

    /// Whether the usage reports so far are interim, so that our own count may be higher.
    pub fn has_only_interim_usage(&self) -> bool {
        self.usage.is_some() && !self.has_final_usage
    }

    /// Reads one frame.
    pub fn frame(&mut self, frame: &Frame, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if self.state == State::Finished {
            return Ok(());
        }
        match frame.data() {
            Data::Absent => Ok(()),
            Data::Line(span) => {
                let data = frame.bytes.get(span).unwrap_or_default();
                self.data(frame, data, out)
            }
            Data::Lines(data) => self.data(frame, &data, out),
        }
    }

    /// Handles the end of the upstream's stream. Returns an error unless the last event has arrived.
    pub fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if self.state == State::Finished {
            Ok(())
        } else {
            Err(UnusableAnswer::Unfinished)
        }
    }

    fn data(
        &mut self,
        frame: &Frame,
        data: &[u8],
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        let failed = |error: &[u8], model: &str| {
            UnusableAnswer::Failure(rejection::read_event(error, model))
        };
        if frame.event() == Some(b"error") {
            return Err(failed(data, &self.model));
        }
        let text = utf8(data)?;
        // Some proxies end every stream with `[DONE]`.
        if text.trim() == "[DONE]" {
            return Ok(());
        }
        let mut cursor = Cursor::new(text);
        let fields = Fields::read(&mut cursor)?;
        cursor.end()?;
        let Some(mut fields) = fields else {
            return Err(UnusableAnswer::malformed("an event is not an object"));
        };
        if let Some(error) = fields.take("error") {
            return Err(failed(error.text().as_bytes(), &self.model));
        }
        let named = || frame.event().map(String::from_utf8_lossy);
        let Some(kind) = fields.string("type").or_else(named) else {
            return Err(UnusableAnswer::malformed("an event has no type"));
        };
        match kind.as_ref() {
            "message_start" => self.message_start(fields.take("message"), out),
            "content_block_start" => self.block_start(fields, out),
            "content_block_delta" => self.block_delta(fields, out),
            "content_block_stop" => {
                self.block_stop(index(&mut fields), out);
                Ok(())
            }
            "message_delta" => {
                self.begin(out);
                self.message_delta(fields, out);
                Ok(())
            }
            "message_stop" => {
                self.begin(out);
                self.finish(out);
                Ok(())
            }
            "error" => Err(failed(data, &self.model)),
            // Keep-alive events and types that are not known.
            _ => Ok(()),
        }
    }

    fn begin(&mut self, out: &mut Vec<Event>) {
        if self.state == State::Silent {
            self.state = State::Begun;
            out.push(Event::Start);
        }
    }

    fn message_start(
        &mut self,
        message: Option<Raw<'_>>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        if self.state != State::Silent {
            return Err(UnusableAnswer::malformed("a message begins inside another"));
        }
        self.begin(out);
        let mut message = message.and_then(Fields::of).unwrap_or_default();
        self.report(message.take("usage"), out);
        Ok(())
    }

    /// Takes a usage report, and returns whether it can be used. The counts of a later report replace
    /// those of an earlier one.
    fn report(&mut self, usage: Option<Raw<'_>>, out: &mut Vec<Event>) -> bool {
        let usage = usage.and_then(|usage| read_usage(usage, self.usage));
        self.usage = usage.or(self.usage);
        self.unreported |= usage.is_some();
        self.flush_usage(out);
        usage.is_some()
    }

    /// Passes usage on between two blocks.
    fn flush_usage(&mut self, out: &mut Vec<Event>) {
        if self.unreported && self.open.is_empty() {
            self.unreported = false;
            out.extend(self.usage.map(Event::Usage));
        }
    }

    fn block_start(
        &mut self,
        mut fields: Fields<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        self.begin(out);
        let index = index(&mut fields);
        let Some(block) = fields.take("content_block") else {
            return Err(UnusableAnswer::malformed("a block begins without one"));
        };
        let mut open = self.open.iter_mut().filter(|open| !open.closed);
        if index.is_none() {
            // Without indexes, blocks arrive one after another.
            open.for_each(|open| open.closed |= open.index.is_none());
        } else if open.any(|open| open.index == index) {
            return Err(UnusableAnswer::malformed("a block begins twice"));
        }
        self.open
            .push_back(OpenBlock::new(index, wire::read(block)?));
        self.flush(out);
        Ok(())
    }

    fn block_delta(
        &mut self,
        mut fields: Fields<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        self.begin(out);
        let index = index(&mut fields);
        let Some(mut delta) = fields.take("delta").and_then(Fields::of) else {
            return Err(UnusableAnswer::malformed("a piece of a block is missing"));
        };
        let kind = delta.string("type").unwrap_or_default();
        if self.running(index).is_none() {
            let block = match kind.as_ref() {
                "text_delta" => Block::Text,
                "thinking_delta" => Block::Thought,
                _ => return Err(UnusableAnswer::malformed("a piece belongs to no block")),
            };
            self.open
                .push_back(OpenBlock::new(index, Some(WireBlock::empty(block))));
        }
        if let Some(open) = self.running(index) {
            open.add(&kind, delta)?;
        }
        self.flush(out);
        Ok(())
    }

    /// The block that an event belongs to: the last one that started, if the event has no index.
    fn running(&mut self, index: Option<u64>) -> Option<&mut OpenBlock> {
        let mut open = self.open.iter_mut().rev().filter(|open| !open.closed);
        match index {
            Some(_) => open.find(|open| open.index == index),
            None => open.next(),
        }
    }

    fn block_stop(&mut self, index: Option<u64>, out: &mut Vec<Event>) {
        if let Some(open) = self.running(index) {
            open.closed = true;
        }
        self.flush(out);
    }

    fn message_delta(&mut self, mut fields: Fields<'_>, out: &mut Vec<Event>) {
        if let Some(mut delta) = fields.take("delta").and_then(Fields::of) {
            for name in ["stop_reason", "stop_sequence", "stop_details"] {
                if let Some(value) = delta.take(name) {
                    self.ending.note(name, value);
                }
            }
        }
        let usage = fields.take("usage");
        let has_output = usage.is_some_and(|usage| has_output(usage.text()));
        self.has_final_usage |= self.report(usage, out) && has_output;
    }

    /// Passes on as much as possible of the blocks that have started, one block at a time.
    fn flush(&mut self, out: &mut Vec<Event>) {
        while let Some(open) = self.open.front_mut() {
            self.has_calls |= matches!(open.block, Some(Block::ToolCall { .. }));
            open.flush(&self.model, out);
            if !open.closed {
                return;
            }
            self.open.pop_front();
        }
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        // The end of the message ends all its blocks.
        for open in &mut self.open {
            open.closed = true;
        }
        self.flush(out);
        self.flush_usage(out);
        let (stop, refusal) = std::mem::take(&mut self.ending).stop(self.has_calls);
        if let Some(text) = refusal {
            out.push(Event::BlockStart(Block::Refusal));
            out.push(Event::Delta(Delta::Text(text)));
            out.push(Event::BlockStop);
        }
        out.push(Event::Finish(stop));
        self.state = State::Finished;
    }
}

/// The index of a block, if the event has one.
fn index(fields: &mut Fields<'_>) -> Option<u64> {
    let index = fields.take("index").and_then(|index| index.integer());
    index.map(Integer::saturating)
}

impl WireBlock {
    fn empty(block: Block) -> Self {
        Self {
            block,
            text: String::new(),
            value: None,
            citations: Vec::new(),
        }
    }
}

impl OpenBlock {
    fn new(index: Option<u64>, found: Option<WireBlock>) -> Self {
        let mut open = Self {
            index,
            block: None,
            text: String::new(),
            input: None,
            value: None,
            citations: Vec::new(),
            characters: 0,
            closed: false,
            is_started: false,
        };
        if let Some(found) = found {
            match found.block {
                Block::ToolCall { .. } => open.input = Some(found.text),
                _ => open.text = found.text,
            }
            open.block = Some(found.block);
            open.value = found.value;
            open.citations = found.citations;
        }
        open
    }

    /// Adds a delta. A delta that does not match its block is an error, because its content would
    /// be lost.
    fn add(&mut self, kind: &str, mut delta: Fields<'_>) -> Result<(), UnusableAnswer> {
        let name = match (kind, &self.block) {
            // Types that only this dialect has, or that are not known.
            (_, None) => return Ok(()),
            ("text_delta", Some(Block::Text)) => "text",
            ("thinking_delta", Some(Block::Thought)) => "thinking",
            ("input_json_delta", Some(Block::ToolCall { .. })) => "partial_json",
            ("signature_delta", Some(Block::Thought)) => {
                let signature = delta.string("signature").filter(|text| !text.is_empty());
                self.value = signature.map(String::from).or(self.value.take());
                return Ok(());
            }
            ("citations_delta", _) => {
                let citation = delta.take("citation");
                self.citations.extend(citation.and_then(wire::source));
                return Ok(());
            }
            ("text_delta" | "thinking_delta" | "input_json_delta" | "signature_delta", _) => {
                return Err(UnusableAnswer::malformed("a piece does not fit its block"));
            }
            _ => return Ok(()),
        };
        let piece = delta.string(name).unwrap_or_default();
        if name == "partial_json" && !piece.is_empty() {
            self.input = None;
        }
        self.text.push_str(&piece);
        Ok(())
    }

    fn flush(&mut self, model: &str, out: &mut Vec<Event>) {
        let Some(block) = &self.block else {
            return;
        };
        let is_call = matches!(block, Block::ToolCall { .. });
        if !self.is_started {
            self.is_started = true;
            out.push(Event::BlockStart(block.clone()));
        }
        if self.closed {
            self.text.extend(self.input.take());
        }
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            out.push(Event::Delta(if is_call {
                Delta::Arguments(text)
            } else {
                self.characters = self.characters.saturating_add(length(&text));
                Delta::Text(text)
            }));
        }
        if !self.closed {
            return;
        }
        for Source { url, title } in self.citations.drain(..) {
            out.push(Event::Delta(Delta::Citation {
                url,
                title,
                start: 0,
                end: self.characters,
            }));
        }
        let value = self.value.take().map(|value| wire::opaque(value, model));
        out.extend(value.map(Delta::Opaque).map(Event::Delta));
        out.push(Event::BlockStop);
    }
}
