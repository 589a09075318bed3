//! Converts a stream that arrives as a JSON list of chunks to events.

use bytes::Bytes;

use crate::unusable_answer::UnusableAnswer;

/// Converts a list of chunks to events as its bytes arrive. It does not validate the JSON of a
/// chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkList {
    at: At,
    /// The number of open objects and arrays in the chunk.
    depth: usize,
}

/// The position of the next byte in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
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
    /// Whether the list has ended.
    pub(super) fn is_complete(&self) -> bool {
        self.at == At::End
    }

    /// Takes the bytes of one read, and returns them as bytes of events.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Bytes, UnusableAnswer> {
        let mut events = Vec::with_capacity(bytes.len() + 16);
        for &byte in bytes {
            self.at = match (self.at, byte) {
                (At::Chunk | At::String | At::Escape, b'\n' | b'\r') => {
                    // Between tokens a space can replace a line end. Inside a string a line end is
                    // invalid, but it would end the event's data, and the reader would not notice.
                    // So a NUL replaces it, which is invalid there, too.
                    events.push(if self.at == At::Chunk { b' ' } else { 0 });
                    continue;
                }
                (at, b' ' | b'\t' | b'\n' | b'\r') if !at.is_in_chunk() => continue,
                (At::Start, b'[') => At::BeforeFirst,
                (At::BeforeFirst | At::BehindComma, b'{') => {
                    events.extend_from_slice(b"data: ");
                    self.depth = 0;
                    self.chunk_byte(byte)
                }
                (At::BehindChunk, b',') => At::BehindComma,
                (At::BeforeFirst | At::BehindChunk, b']') => At::End,
                (At::Chunk, _) => self.chunk_byte(byte),
                (At::String, b'"') => At::Chunk,
                (At::String, b'\\') => At::Escape,
                (At::String | At::Escape, _) => At::String,
                (At::Start | At::BeforeFirst | At::BehindComma | At::BehindChunk | At::End, _) => {
                    return Err(UnusableAnswer::malformed(
                        "the answer is not a list of objects",
                    ));
                }
            };
            if self.at.is_in_chunk() {
                events.push(byte);
            } else if self.at == At::BehindChunk {
                events.push(byte);
                events.extend_from_slice(b"\n\n");
            }
        }
        Ok(Bytes::from(events))
    }

    /// The position after a byte of a chunk that is not inside a string.
    fn chunk_byte(&mut self, byte: u8) -> At {
        match byte {
            b'"' => return At::String,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.depth == 0 {
            At::BehindChunk
        } else {
            At::Chunk
        }
    }
}

impl At {
    fn is_in_chunk(self) -> bool {
        matches!(self, Self::Chunk | Self::String | Self::Escape)
    }
}
