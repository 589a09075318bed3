//! Turns the events of an answer into parts, for streams and whole answers.

use super::sources::Source;
use crate::canon::{Block, Delta, Event, OffsetConverter, Opaque, Request, Stop, Token};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::generate::part::{self, TextKind};
use crate::generate::request::tool_names;
use crate::shared::signature;
use crate::usage::Usage;

#[derive(Debug, Default)]
pub(in crate::generate) struct Composer {
    open: Option<Block>,
    /// Content that is sent as a whole: arguments, an image, or a thought that may stay hidden.
    whole: String,
    opaque: Option<Opaque>,
    /// A signature to send with the next part.
    pending: Option<String>,
    offsets: OffsetConverter,
    pub(in crate::generate) sources: Vec<Source>,
    pub(in crate::generate) usage: Option<Usage>,
    /// Log probabilities that have not been sent.
    pub(in crate::generate) tokens: Vec<Token>,
    part: Vec<u8>,
}

/// Whether the answer continues after an event.
#[derive(Debug)]
pub(in crate::generate) enum Progress {
    Continues,
    Finished(Stop),
    Failed(Failure),
}

impl Composer {
    /// Takes an event, and emits the parts that it completes with their log probabilities.
    pub(in crate::generate) fn event(
        &mut self,
        event: Event,
        request: &Request,
        emit: &mut impl FnMut(&[u8], &[Token]),
    ) -> Progress {
        match event {
            Event::Start => {}
            Event::BlockStart(block) => {
                self.open = Some(block);
                self.whole.clear();
                self.opaque = None;
                self.offsets = OffsetConverter::new();
            }
            Event::Delta(delta) => self.delta(delta, request, emit),
            Event::BlockStop => self.close(request, emit),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Finish(stop) => return Progress::Finished(stop),
            Event::Failed(failure) => return Progress::Failed(failure),
        }
        Progress::Continues
    }

    /// Takes the pending signature, to send it with the last part.
    pub(in crate::generate) fn pending(&mut self) -> Option<String> {
        self.pending.take()
    }

    fn delta(&mut self, delta: Delta, request: &Request, emit: &mut impl FnMut(&[u8], &[Token])) {
        match (&self.open, delta) {
            (Some(Block::Text | Block::Refusal), Delta::Text(text)) => {
                self.offsets.push(&text);
                self.emit_text(&text, TextKind::Answer, emit);
            }
            (Some(Block::Thought), Delta::Text(text)) if shows(request) => {
                self.emit_text(&text, TextKind::Thought, emit);
            }
            (Some(_), Delta::Text(text) | Delta::Arguments(text)) => self.whole.push_str(&text),
            (Some(_), Delta::Logprobs(tokens)) => self.tokens.extend(tokens),
            (Some(_), Delta::Opaque(opaque)) => self.opaque = Some(opaque),
            (
                Some(_),
                Delta::Citation {
                    url,
                    title,
                    start,
                    end,
                },
            ) => {
                let (start, end) = (self.offsets.bytes(start), self.offsets.bytes(end));
                if let (Some(start), Some(end)) = (start, end) {
                    self.sources.push(Source {
                        url,
                        title,
                        start,
                        end,
                    });
                }
            }
            (None, _) => {}
        }
    }

    fn close(&mut self, request: &Request, emit: &mut impl FnMut(&[u8], &[Token])) {
        let whole = std::mem::take(&mut self.whole);
        let opaque = self.opaque.take();
        let signature = opaque
            .as_ref()
            .map(|opaque| signature::for_client(opaque, Dialect::Generate).into_owned());
        match self.open.take() {
            Some(Block::Thought) => self.close_thought(&whole, signature, request, emit),
            Some(Block::ToolCall { id, name }) => {
                if signature.is_some() {
                    self.flush(emit);
                }
                let signature = signature.or_else(|| self.pending.take());
                let name = tool_names::original(&request.renamed, &name);
                self.part.clear();
                part::call(&mut self.part, &id, name, &whole, signature.as_deref());
                emit(&self.part, &[]);
            }
            Some(Block::Image { mime }) => {
                self.flush(emit);
                self.part.clear();
                part::inline(&mut self.part, &mime, &whole);
                emit(&self.part, &[]);
            }
            Some(Block::Text | Block::Refusal) | None => {}
        }
    }

    /// Ends a thought. A client that did not ask for thoughts receives the thought only if the model needs it
    /// back. A signature without a text is sent with the next part, as upstreams of this dialect do.
    fn close_thought(
        &mut self,
        hidden: &str,
        signature: Option<String>,
        request: &Request,
        emit: &mut impl FnMut(&[u8], &[Token]),
    ) {
        let Some(signature) = signature else {
            return;
        };
        self.flush(emit);
        if hidden.is_empty() && !shows(request) {
            self.pending = Some(signature);
            return;
        }
        self.pending = Some(signature);
        self.emit_text(hidden, TextKind::Thought, emit);
    }

    /// Sends a signature that no part carried.
    fn flush(&mut self, emit: &mut impl FnMut(&[u8], &[Token])) {
        if self.pending.is_some() {
            self.emit_text("", TextKind::Thought, emit);
        }
    }

    fn emit_text(&mut self, text: &str, voice: TextKind, emit: &mut impl FnMut(&[u8], &[Token])) {
        let signature = self.pending.take();
        self.part.clear();
        part::text(&mut self.part, text, voice, signature.as_deref());
        let tokens = match voice {
            TextKind::Answer => std::mem::take(&mut self.tokens),
            TextKind::Thought => Vec::new(),
        };
        emit(&self.part, &tokens);
    }
}

/// Whether the client asked for thoughts.
fn shows(request: &Request) -> bool {
    request
        .reasoning
        .as_ref()
        .is_some_and(|reasoning| reasoning.show)
}
