//! Builds an object from the members of another one without copying large values.

use bytes::Bytes;

use crate::byte_queue::ByteQueue;
use crate::json::write_string;

pub(super) struct RebuiltObject<'b> {
    body: &'b Bytes,
    out: ByteQueue,
    any: bool,
}

impl<'b> RebuiltObject<'b> {
    pub(super) fn new(body: &'b Bytes) -> Self {
        let mut out = ByteQueue::new();
        out.copy(b"{");
        Self {
            body,
            out,
            any: false,
        }
    }

    /// Starts a member.
    pub(super) fn name(&mut self, name: &str) -> &mut Self {
        let mut text = Vec::with_capacity(name.len() + 4);
        if std::mem::replace(&mut self.any, true) {
            text.push(b',');
        }
        write_string(&mut text, name);
        text.push(b':');
        self.out.copy(&text);
        self
    }

    pub(super) fn text(&mut self, text: &[u8]) -> &mut Self {
        self.out.copy(text);
        self
    }

    pub(super) fn string(&mut self, value: &str) -> &mut Self {
        let mut text = Vec::with_capacity(value.len() + 2);
        write_string(&mut text, value);
        self.text(&text)
    }

    /// Writes a span of the body.
    pub(super) fn span(&mut self, span: std::ops::Range<usize>) -> &mut Self {
        self.out.share(self.body, span);
        self
    }

    pub(super) fn finish(mut self) -> Vec<Bytes> {
        self.out.copy(b"}");
        self.out.into_pieces()
    }
}
