//! Answers of upstreams that do not stream, although they were asked to.

use bytes::Bytes;

use crate::dialect::Dialect;
use crate::json::{Cursor, utf8};
use crate::native::Broken;

/// Whether a body that begins like this is a whole answer. Generate Content upstreams may send a
/// list of chunks.
pub(super) fn is_whole_answer(dialect: Dialect, first: u8) -> bool {
    first == b'{' || first == b'[' && dialect == Dialect::Generate
}

/// The events of a stream whose chunks came as a list.
pub(super) fn list_as_events(body: &[u8]) -> Result<Bytes, Broken> {
    let mut events = Vec::with_capacity(body.len());
    let mut cursor = Cursor::new(utf8(body)?);
    cursor.array(|cursor| {
        let chunk = cursor.value()?;
        events.extend_from_slice(b"data: ");
        // Between the tokens of JSON a space is as good as a line feed.
        let line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let bytes = chunk.text().bytes();
        events.extend(bytes.map(|byte| if line_end(&byte) { b' ' } else { byte }));
        events.extend_from_slice(b"\n\n");
        Ok::<(), Broken>(())
    })?;
    cursor.end()?;
    Ok(Bytes::from(events))
}
