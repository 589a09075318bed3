//! Turns chat completions and chunks into events of the common form.
//!
//! A chat message has members that grow in any order, and pieces of several tool calls may be interleaved.
//! The common form has one open block at a time. Pieces of the open block are passed on at once. Pieces of
//! later blocks wait until the open block is complete. A text is complete when anything else arrives. A call
//! is complete when its arguments are a complete object or the answer ends.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::tool_calls::{Call, MatchedCall, ToolCalls};
use crate::canon::{Block, Delta, Event, Opaque, Stop, Token};
use crate::chat::response::wire::{Answer, Call as CallPiece, Choice, Citation, Message};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::sse::EVENT_BYTES_MAX;
use crate::unusable_answer::UnusableAnswer;
use crate::usage::Usage;

/// The maximum number of bytes that wait until the open block is complete.
const WAITING_BYTES_MAX: usize = EVENT_BYTES_MAX;

#[derive(Debug, Default)]
pub(in crate::chat) struct Assembler {
    model: Box<str>,
    started: bool,
    open: OpenBlock,
    calls: ToolCalls,
    queue: VecDeque<Item>,
    waiting_bytes: usize,
    usage: Option<Usage>,
    /// Characters in the text blocks before the open one.
    chars_before: u64,
    chars_open: u64,
    /// Log probabilities of text that has not arrived or still waits.
    tokens: Vec<Token>,
    refused: bool,
    stop: Option<Stop>,
    /// Makes generated call ids differ between answers.
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum OpenBlock {
    #[default]
    Nothing,
    Text(Kind),
    Call(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thought,
    Refusal,
}

/// A block that waits until the open one is complete.
#[derive(Debug)]
enum Item {
    Text(Kind, String),
    Call(usize),
}

impl Assembler {
    pub(in crate::chat) fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            ..Self::default()
        }
    }

    /// Takes a completion or a chunk. Returns whether it had a choice.
    pub(in crate::chat) fn take(
        &mut self,
        data: &[u8],
        model: &str,
        out: &mut Vec<Event>,
    ) -> Result<bool, UnusableAnswer> {
        let answer = Answer::read(data, model)?;
        if let Some(id) = answer.id {
            self.seed(&id);
        }
        let any = !answer.choices.is_empty();
        for choice in answer.choices {
            self.choice(choice, out)?;
        }
        if let Some(usage) = answer.usage {
            self.usage(usage, out);
        }
        Ok(any)
    }

    pub(in crate::chat) fn choice(
        &mut self,
        choice: Choice<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        self.start(out);
        let count = choice.logprobs.len();
        self.tokens.extend(choice.logprobs);
        self.message(choice.message, out)?;
        if !self.tokens.is_empty() {
            self.wait(count.saturating_mul(size_of::<Token>()))?;
        }
        if let Some(reason) = choice.finish_reason {
            self.stop = Some(read_finish_reason(&reason)?);
            self.close_all(out)?;
        }
        Ok(())
    }

    /// Takes a usage report, which is passed on as soon as no block is open.
    pub(in crate::chat) fn usage(&mut self, usage: Usage, out: &mut Vec<Event>) {
        self.start(out);
        self.usage = Some(usage);
        self.pass_usage_on(out);
    }

    /// Takes the upstream's id of the answer, from which generated call ids are derived.
    pub(in crate::chat) fn seed(&mut self, id: &str) {
        if self.seed == 0 {
            self.seed = fnv1a(id.as_bytes());
        }
    }

    pub(in crate::chat) fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        self.start(out);
        self.close_all(out)?;
        let stop = match self.stop.take().unwrap_or(Stop::End) {
            // Some upstreams send `stop` after tool calls too.
            Stop::End if !self.calls.is_empty() => Stop::ToolCalls,
            Stop::End if self.refused => Stop::Refusal { category: None },
            stop => stop,
        };
        out.push(Event::Finish(stop));
        Ok(())
    }

    fn start(&mut self, out: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.started, true) {
            out.push(Event::Start);
        }
    }

    fn message(&mut self, said: Message<'_>, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if let Some(thought) = said.thought {
            self.text_of_kind(Kind::Thought, thought, out)?;
        }
        for text in said.texts {
            self.text_of_kind(Kind::Text, text, out)?;
        }
        for citation in said.citations {
            self.citation(citation, out);
        }
        if let Some(refusal) = said.refusal {
            self.refused = true;
            self.text_of_kind(Kind::Refusal, refusal, out)?;
        }
        for piece in said.calls {
            self.call(piece, out)?;
        }
        Ok(())
    }

    fn text_of_kind(
        &mut self,
        kind: Kind,
        text: Cow<'_, str>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        if self.queue.is_empty() && self.may_close() {
            self.open_text(kind, out);
            self.put_text(kind, text.into_owned(), out);
            return Ok(());
        }
        self.wait(text.len())?;
        match self.queue.back_mut() {
            Some(Item::Text(last, waiting)) if *last == kind => waiting.push_str(&text),
            _ => self.queue.push_back(Item::Text(kind, text.into_owned())),
        }
        self.advance(false, out)
    }

    fn open_text(&mut self, kind: Kind, out: &mut Vec<Event>) {
        if self.open == OpenBlock::Text(kind) {
            return;
        }
        self.close(out);
        self.open = OpenBlock::Text(kind);
        out.push(Event::BlockStart(match kind {
            Kind::Text => Block::Text,
            Kind::Thought => Block::Thought,
            Kind::Refusal => Block::Refusal,
        }));
    }

    fn put_text(&mut self, kind: Kind, text: String, out: &mut Vec<Event>) {
        if kind == Kind::Text {
            let chars = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
            self.chars_open = self.chars_open.saturating_add(chars);
            self.put_tokens(out);
        }
        out.push(Event::Delta(Delta::Text(text)));
    }

    fn put_tokens(&mut self, out: &mut Vec<Event>) {
        if !self.tokens.is_empty() {
            let tokens = std::mem::take(&mut self.tokens);
            out.push(Event::Delta(Delta::Logprobs(tokens)));
        }
    }

    /// Passes on a citation if its text is still open. Otherwise the citation is dropped.
    fn citation(&mut self, citation: Citation<'_>, out: &mut Vec<Event>) {
        if self.open != OpenBlock::Text(Kind::Text) {
            return;
        }
        out.push(Event::Delta(Delta::Citation {
            url: citation.url.unwrap_or_default().into_owned(),
            title: citation.title.unwrap_or_default().into_owned(),
            start: citation.start.saturating_sub(self.chars_before),
            end: citation.end.saturating_sub(self.chars_before),
        }));
    }

    fn call(&mut self, piece: CallPiece<'_>, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        let MatchedCall { number, is_new } = self.calls.find(&piece)?;
        if is_new {
            self.queue.push_back(Item::Call(number));
        }
        let arguments = piece.arguments.unwrap_or_default();
        let signature = piece.signature.map(|text| Opaque {
            origin: Dialect::Chat,
            model: self.model.clone(),
            text: text.into(),
        });
        let is_open = self.open == OpenBlock::Call(number);
        let Some(call) = self.calls.get_mut(number) else {
            return Ok(());
        };
        call.object_end.feed(&arguments);
        let signature = signature.filter(|_| !std::mem::replace(&mut call.signed, true));
        if is_open {
            out.extend(signature.map(Delta::Opaque).map(Event::Delta));
            if !arguments.is_empty() {
                out.push(Event::Delta(Delta::Arguments(arguments.into_owned())));
            }
        } else if call.closed {
            if !arguments.trim_ascii().is_empty() {
                return Err(UnusableAnswer::malformed(
                    "a tool call goes on behind its end",
                ));
            }
        } else {
            call.signature = signature.or(call.signature.take());
            if call.id.is_empty() {
                call.id = piece.id.unwrap_or_default().into_owned();
            }
            if call.name.is_empty() {
                call.name = piece.name.unwrap_or_default().into_owned();
            }
            call.waiting.push_str(&arguments);
            self.wait(arguments.len())?;
        }
        self.advance(false, out)
    }

    fn wait(&mut self, bytes: usize) -> Result<(), UnusableAnswer> {
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        if self.waiting_bytes > WAITING_BYTES_MAX {
            return Err(UnusableAnswer::TooLarge(WAITING_BYTES_MAX));
        }
        Ok(())
    }

    /// Whether the open block can be closed: a text at any time, a call once its arguments are complete.
    fn may_close(&self) -> bool {
        match self.open {
            OpenBlock::Nothing | OpenBlock::Text(_) => true,
            OpenBlock::Call(number) => self
                .calls
                .get(number)
                .is_none_or(|call| call.object_end.is_whole()),
        }
    }

    /// Opens waiting blocks as long as the open block can be closed. Opens all of them if the answer has
    /// ended.
    fn advance(&mut self, last: bool, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        while last || self.may_close() {
            match self.queue.front() {
                None => break,
                Some(Item::Call(number)) => {
                    let number = *number;
                    let nameless = |call: &Call| call.name.is_empty();
                    if self.calls.get(number).is_none_or(nameless) {
                        if last {
                            return Err(UnusableAnswer::malformed("a tool call has no name"));
                        }
                        break;
                    }
                    self.queue.pop_front();
                    self.open_call(number, out);
                }
                Some(Item::Text(..)) => {
                    if let Some(Item::Text(kind, text)) = self.queue.pop_front() {
                        self.open_text(kind, out);
                        self.put_text(kind, text, out);
                    }
                }
            }
        }
        Ok(())
    }

    fn open_call(&mut self, number: usize, out: &mut Vec<Event>) {
        self.close(out);
        let seed = self.seed;
        let Some(call) = self.calls.get_mut(number) else {
            return;
        };
        if call.id.is_empty() {
            call.id = format!("call_{seed:x}_{number}");
        }
        self.open = OpenBlock::Call(number);
        out.push(Event::BlockStart(Block::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
        }));
        out.extend(call.signature.take().map(Delta::Opaque).map(Event::Delta));
        if !call.waiting.is_empty() {
            let waiting = std::mem::take(&mut call.waiting);
            out.push(Event::Delta(Delta::Arguments(waiting)));
        }
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        match std::mem::take(&mut self.open) {
            OpenBlock::Nothing => return,
            OpenBlock::Text(kind) => {
                if kind == Kind::Text {
                    self.put_tokens(out);
                }
                let chars = std::mem::take(&mut self.chars_open);
                self.chars_before = self.chars_before.saturating_add(chars);
            }
            OpenBlock::Call(number) => {
                if let Some(call) = self.calls.get_mut(number) {
                    call.closed = true;
                }
            }
        }
        out.push(Event::BlockStop);
    }

    fn close_all(&mut self, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        self.advance(true, out)?;
        self.close(out);
        self.pass_usage_on(out);
        Ok(())
    }

    fn pass_usage_on(&mut self, out: &mut Vec<Event>) {
        if self.open == OpenBlock::Nothing && self.queue.is_empty() {
            out.extend(self.usage.take().map(Event::Usage));
        }
    }
}

fn read_finish_reason(reason: &str) -> Result<Stop, UnusableAnswer> {
    Ok(match reason {
        "length" | "max_tokens" | "model_length" => Stop::Length,
        "tool_calls" | "function_call" => Stop::ToolCalls,
        "content_filter" => Stop::Filter(None),
        "error" => return Err(UnusableAnswer::Failure(Failure::upstream_error())),
        "insufficient_system_resource" => {
            return Err(UnusableAnswer::Failure(Failure::upstream_overloaded()));
        }
        _ => Stop::End,
    })
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
