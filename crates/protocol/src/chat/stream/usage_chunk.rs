//! Writes the usage chunk of a stream whose upstream sends none.

use crate::answer_layout::Identity;
use crate::chat::usage::write_usage;
use crate::json::write::object;
use crate::usage::Usage;

/// Writes the chunk that reports the usage of a stream. It has no choices.
pub(crate) fn write_usage_chunk(identity: &Identity, usage: &Usage) -> Vec<u8> {
    let mut chunk = b"data: ".to_vec();
    object(&mut chunk, |it| {
        it.text("id", &identity.id);
        it.text("object", "chat.completion.chunk");
        it.number("created", identity.created);
        it.text("model", &identity.model);
        it.array("choices", |_| {});
        it.object("usage", |it| write_usage(it, usage));
    });
    chunk.extend_from_slice(b"\n\n");
    chunk
}
