//! Numbers events and writes them.

use crate::byte_queue::ByteQueue;
use crate::json::write;

#[derive(Debug, Default)]
pub(super) struct EventSender {
    /// The number of the next event.
    pub(super) sequence: u64,
    buffer: Vec<u8>,
}

impl EventSender {
    pub(super) fn send(
        &mut self,
        out: &mut ByteQueue,
        name: &str,
        write: impl FnOnce(&mut write::Object<'_>),
    ) {
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.extend_from_slice(b"event: ");
        buffer.extend_from_slice(name.as_bytes());
        buffer.extend_from_slice(b"\ndata: ");
        write::object(buffer, |it| {
            it.text("type", name);
            it.number("sequence_number", self.sequence);
            write(it);
        });
        buffer.extend_from_slice(b"\n\n");
        out.copy(buffer);
        self.sequence = self.sequence.saturating_add(1);
    }

    pub(super) fn added(
        &mut self,
        out: &mut ByteQueue,
        index: u64,
        item: impl FnOnce(&mut Vec<u8>),
    ) {
        self.send(out, "response.output_item.added", |it| {
            it.number("output_index", index);
            it.value("item", item);
        });
    }
}
