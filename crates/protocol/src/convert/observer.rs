//! Observes the events of an answer for billing.

use crate::canon::{Block, Delta, Event, Response};
use crate::count::Counter;
use crate::usage::Usage;

/// The contents of the answer so far.
#[derive(Debug, Default)]
pub(super) struct Observer {
    counter: Counter,
    /// Whether there was any output.
    pub(super) content: bool,
    pub(super) pictures: u64,
    pub(super) usage: Option<Usage>,
}

impl Observer {
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::BlockStart(block) => self.block(block),
            Event::Delta(Delta::Text(text) | Delta::Arguments(text)) => self.text(text),
            Event::Delta(Delta::Opaque(_) | Delta::Logprobs(_) | Delta::Citation { .. }) => {
                self.content = true;
            }
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::Start | Event::BlockStop | Event::Finish(_) | Event::Failed(_) => {}
        }
    }

    /// Our count of the output tokens of a whole answer.
    pub(super) fn tokens_of(response: &Response) -> u64 {
        let mut observer = Self::default();
        for block in &response.blocks {
            observer.block(&block.kind);
            if !block.kind.is_picture() {
                observer.text(&block.text);
            }
        }
        observer.tokens()
    }

    /// Our count of the output tokens so far.
    pub(super) fn tokens(&self) -> u64 {
        self.counter.tokens()
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::ToolCall { name, .. } => self.text(name),
            Block::Image { .. } => {
                self.content = true;
                self.pictures = self.pictures.saturating_add(1);
            }
            Block::Text | Block::Thought | Block::Refusal => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.content |= !text.is_empty();
        self.counter.add(text.as_bytes());
    }
}
