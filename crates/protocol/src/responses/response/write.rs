//! Writes a whole answer of the common form.

use super::object::{ContentKinds, Ending, Object};
use super::output::{self, ItemId};
use crate::canon::{AnswerContext, Block, Response, ResponseBlock};

/// Writes a whole answer.
pub fn write_response(response: &Response, context: &AnswerContext) -> Vec<u8> {
    let ids = ItemId::new(&context.id);
    let mut items = Items {
        out: Vec::new(),
        count: 0,
        parts: Vec::new(),
        ids,
    };
    let mut said = ContentKinds::default();
    for block in &response.blocks {
        if let Block::Text | Block::Refusal = block.kind {
            said.note(block.kind == Block::Refusal, &block.text);
        }
        items.block(block);
    }
    if let Some(words) = said.missing_refusal(&response.stop) {
        items.part(true, words, &[], &[]);
    }
    let ending = Ending::of(&response.stop, said);
    items.close_message(ending.item_status());
    let mut out = Vec::with_capacity(items.out.len() + 1024);
    Object::new(context).write(&mut out, &ending, &items.out, response.usage.as_ref());
    out
}

struct Items {
    out: Vec<u8>,
    count: u64,
    /// The parts of the current message.
    parts: Vec<u8>,
    ids: ItemId,
}

impl Items {
    fn block(&mut self, block: &ResponseBlock) {
        match &block.kind {
            Block::Text | Block::Refusal => {
                let is_refusal = block.kind == Block::Refusal;
                let citations = block.citations.iter();
                let mut annotations = Vec::new();
                for (url, title, start, end) in citations {
                    output::push_annotation(&mut annotations, url, title, *start, *end);
                }
                let mut logprobs = Vec::new();
                output::push_logprobs(&mut logprobs, &block.logprobs);
                self.part(is_refusal, &block.text, &annotations, &logprobs);
            }
            Block::Thought => {
                let opaque = block.opaque.as_ref().map(output::encrypted_content);
                let (id, out) = self.next("rs");
                output::reasoning(out, &id, &block.text, opaque.as_deref());
            }
            Block::ToolCall { id, name } => {
                if let Some(opaque) = &block.opaque {
                    let (id, out) = self.next("rs");
                    output::reasoning(out, &id, "", Some(&output::encrypted_content(opaque)));
                }
                let arguments = output::arguments(&block.text);
                let (item, out) = self.next("fc");
                output::call(out, &item, id, name, arguments, "completed");
                return;
            }
            // `convert/answer.rs` or `transcoder.rs` has replaced the image with a text.
            Block::Image { .. } => return,
        }
        if let (Block::Text, Some(opaque)) = (&block.kind, &block.opaque) {
            let (id, out) = self.next("rs");
            output::reasoning(out, &id, "", Some(&output::encrypted_content(opaque)));
        }
    }

    /// Adds a part to the message. `annotations` and `logprobs` are lists without brackets.
    fn part(&mut self, is_refusal: bool, text: &str, annotations: &[u8], logprobs: &[u8]) {
        if !self.parts.is_empty() {
            self.parts.push(b',');
        }
        output::part(&mut self.parts, is_refusal, text, annotations, logprobs);
    }

    /// The id of the next item, and the buffer to write the item to.
    fn next(&mut self, prefix: &str) -> (String, &mut Vec<u8>) {
        self.close_message("completed");
        let id = self.ids.at(prefix, self.count);
        self.separate();
        (id, &mut self.out)
    }

    fn close_message(&mut self, status: &str) {
        if self.parts.is_empty() {
            return;
        }
        let parts = std::mem::take(&mut self.parts);
        let id = self.ids.at("msg", self.count);
        self.separate();
        output::message(&mut self.out, &id, status, &parts);
    }

    fn separate(&mut self) {
        if self.count > 0 {
            self.out.push(b',');
        }
        self.count = self.count.saturating_add(1);
    }
}
