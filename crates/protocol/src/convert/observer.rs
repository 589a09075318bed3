//! Watches the events of an answer go by, for the bill.

use crate::canon::{Block, Delta, Event, Response};
use crate::count::Counter;
use crate::usage::Usage;

/// What has been seen of an answer's output.
#[derive(Debug, Default)]
pub(super) struct Observer {
    counter: Counter,
    /// Whether there was any output.
    pub(super) content: bool,
    /// Pictures that went by.
    pub(super) pictures: u64,
    /// The last usage report.
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

    /// Output tokens of a whole answer, as we count them.
    pub(super) fn tokens_of(response: &Response) -> u64 {
        let mut observer = Self::default();
        for folded in &response.blocks {
            observer.block(&folded.block);
            if !folded.block.is_picture() {
                observer.text(&folded.text);
            }
        }
        observer.tokens()
    }

    /// Output tokens as we count them.
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
