//! A whole answer, built from its events.

use crate::unusable_answer::UnusableAnswer;
use crate::usage::Usage;

use super::event::{Block, Delta, Event, Stop};
use super::logprobs::Token;
use super::opaque::Opaque;

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    pub blocks: Vec<ResponseBlock>,
    pub stop: Stop,
    pub usage: Option<Usage>,
}

/// A complete block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseBlock {
    pub kind: Block,
    /// The whole text, base64 or arguments of the block.
    pub text: String,
    pub opaque: Option<Opaque>,
    /// URL, title, start and end of each source.
    pub citations: Vec<(String, String, u64, u64)>,
    /// Log probabilities of the text, if they were requested.
    pub logprobs: Vec<Token>,
}

/// Collects events into a [`Response`].
#[derive(Debug, Default)]
pub struct ResponseBuilder {
    blocks: Vec<ResponseBlock>,
    usage: Option<Usage>,
}

impl ResponseBuilder {
    /// Takes the next event. Returns the response after the last event, or the failure that ended the answer.
    pub fn push(&mut self, event: Event) -> Option<Result<Response, crate::failure::Failure>> {
        match event {
            Event::Start | Event::BlockStop => {}
            Event::BlockStart(block) => self.blocks.push(ResponseBlock {
                kind: block,
                text: String::new(),
                opaque: None,
                citations: Vec::new(),
                logprobs: Vec::new(),
            }),
            Event::Delta(delta) => self.take(delta),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Finish(stop) => {
                let blocks = std::mem::take(&mut self.blocks);
                return Some(Ok(Response {
                    blocks,
                    stop,
                    usage: self.usage,
                }));
            }
            Event::Failed(failure) => return Some(Err(failure)),
        }
        None
    }

    fn take(&mut self, delta: Delta) {
        let Some(open) = self.blocks.last_mut() else {
            return;
        };
        match delta {
            Delta::Text(text) | Delta::Arguments(text) => open.text.push_str(&text),
            Delta::Logprobs(tokens) => open.logprobs.extend(tokens),
            Delta::Opaque(opaque) => open.opaque = Some(opaque),
            Delta::Citation {
                url,
                title,
                start,
                end,
            } => open.citations.push((url, title, start, end)),
        }
    }
}

impl Response {
    /// Builds the response from the events of a whole answer.
    pub(crate) fn from_events(events: Vec<Event>) -> Result<Self, UnusableAnswer> {
        let mut builder = ResponseBuilder::default();
        match events.into_iter().find_map(|event| builder.push(event)) {
            Some(response) => response.map_err(UnusableAnswer::Failure),
            None => Err(UnusableAnswer::Unfinished),
        }
    }

    /// The events that build this response, so that a stream writer can write it.
    pub fn into_events(self) -> impl Iterator<Item = Event> {
        let blocks = self.blocks.into_iter().flat_map(|block| {
            let mut events = vec![Event::BlockStart(block.kind.clone())];
            let mut opaque = block.opaque.map(Delta::Opaque).map(Event::Delta);
            // The signature of a call comes first, so that it can become part of the call's id.
            if matches!(block.kind, Block::ToolCall { .. }) {
                events.extend(opaque.take());
            }
            if !block.logprobs.is_empty() {
                events.push(Event::Delta(Delta::Logprobs(block.logprobs)));
            }
            if !block.text.is_empty() {
                let text = block.text;
                events.push(Event::Delta(match block.kind {
                    Block::ToolCall { .. } => Delta::Arguments(text),
                    _ => Delta::Text(text),
                }));
            }
            events.extend(block.citations.into_iter().map(|(url, title, start, end)| {
                Event::Delta(Delta::Citation {
                    url,
                    title,
                    start,
                    end,
                })
            }));
            events.extend(opaque);
            events.push(Event::BlockStop);
            events
        });
        std::iter::once(Event::Start)
            .chain(blocks)
            .chain(self.usage.map(Event::Usage))
            .chain(std::iter::once(Event::Finish(self.stop)))
    }
}
