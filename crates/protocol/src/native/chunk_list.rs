//! Converts a stream that arrives as a JSON list of chunks to events.

use bytes::Bytes;

use crate::unusable_answer::UnusableAnswer;

/// Converts a list of chunks to events as its bytes arrive. It does not validate the JSON of a
/// chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkList {
    at: ListPosition,
    /// The number of open objects and arrays in the chunk.
    depth: usize,
}

/// The position of the next byte in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ListPosition {
    #[default]
    Start,
    BeforeFirst,
    BehindComma,
    Chunk,
    String,
    /// After a backslash in a string.
    Escape,
    BehindChunk,
    End,
}

impl ChunkList {
    pub(super) fn is_complete(&self) -> bool {
        self.at == ListPosition::End
    }

    /// Takes the bytes of one read, and returns them as bytes of events.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Bytes, UnusableAnswer> {
        let mut events = Vec::with_capacity(bytes.len() + 16);
        for &byte in bytes {
            self.at = match (self.at, byte) {
                (
                    ListPosition::Chunk | ListPosition::String | ListPosition::Escape,
                    b'\n' | b'\r',
                ) => {
                    // Between tokens a space can replace a line end. Inside a string a line end is
                    // invalid, but it would end the event's data, and the reader would not notice.
                    // So a NUL replaces it, which is invalid there, too.
                    events.push(if self.at == ListPosition::Chunk {
                        b' '
                    } else {
                        0
                    });
                    continue;
                }
                (at, b' ' | b'\t' | b'\n' | b'\r') if !at.is_in_chunk() => continue,
                (ListPosition::Start, b'[') => ListPosition::BeforeFirst,
                (ListPosition::BeforeFirst | ListPosition::BehindComma, b'{') => {
                    events.extend_from_slice(b"data: ");
                    self.depth = 0;
                    self.chunk_byte(byte)
                }
                (ListPosition::BehindChunk, b',') => ListPosition::BehindComma,
                (ListPosition::BeforeFirst | ListPosition::BehindChunk, b']') => ListPosition::End,
                (ListPosition::Chunk, _) => self.chunk_byte(byte),
                (ListPosition::String, b'"') => ListPosition::Chunk,
                (ListPosition::String, b'\\') => ListPosition::Escape,
                (ListPosition::String | ListPosition::Escape, _) => ListPosition::String,
                (
                    ListPosition::Start
                    | ListPosition::BeforeFirst
                    | ListPosition::BehindComma
                    | ListPosition::BehindChunk
                    | ListPosition::End,
                    _,
                ) => {
                    return Err(UnusableAnswer::malformed(
                        "the answer is not a list of objects",
                    ));
                }
            };
            if self.at.is_in_chunk() {
                events.push(byte);
            } else if self.at == ListPosition::BehindChunk {
                events.push(byte);
                events.extend_from_slice(b"\n\n");
            }
        }
        Ok(Bytes::from(events))
    }

    /// The position after a byte of a chunk that is not inside a string.
    fn chunk_byte(&mut self, byte: u8) -> ListPosition {
        match byte {
            b'"' => return ListPosition::String,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.depth == 0 {
            ListPosition::BehindChunk
        } else {
            ListPosition::Chunk
        }
    }
}

impl ListPosition {
    fn is_in_chunk(self) -> bool {
        matches!(self, Self::Chunk | Self::String | Self::Escape)
    }
}
