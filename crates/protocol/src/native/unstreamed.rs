//! What an upstream sends that was asked for a stream: events, or a JSON text where it does not
//! stream.

use std::mem;

use bytes::{Buf, Bytes};

use super::broken::Broken;
use crate::dialect::Dialect;
use crate::sse::EVENT_BYTES_MAX;

/// What the upstream sends.
#[derive(Debug, Default)]
pub(crate) enum Body {
    /// Only white space so far.
    #[default]
    Unknown,
    Events,
    /// A list of the chunks of a stream. Generate Content upstreams may send it.
    List(ChunkList),
    /// A whole answer, which is translated when it is complete.
    Answer(Vec<u8>),
}

impl Body {
    /// Takes the bytes of one read. Returns those of events; an answer is kept.
    pub(crate) fn take(
        &mut self,
        dialect: Dialect,
        mut chunk: Bytes,
    ) -> Result<Option<Bytes>, Broken> {
        if let Self::Unknown = self {
            chunk.advance(chunk.len() - chunk.trim_ascii_start().len());
            *self = match chunk.first() {
                None => return Ok(None),
                Some(b'{') => Self::Answer(Vec::new()),
                Some(b'[') if dialect == Dialect::Generate => Self::List(ChunkList::default()),
                Some(_) => Self::Events,
            };
        }
        match self {
            Self::Unknown | Self::Events => Ok(Some(chunk)),
            Self::List(list) => list.take(&chunk).map(Some),
            Self::Answer(answer) => {
                answer.extend_from_slice(&chunk);
                if answer.len() > EVENT_BYTES_MAX {
                    return Err(Broken::TooLarge(EVENT_BYTES_MAX));
                }
                Ok(None)
            }
        }
    }

    /// Takes the whole answer at the end of the stream, if it is one. A list must have ended.
    pub(crate) fn take_answer(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        match self {
            Self::Answer(answer) => Ok(Some(mem::take(answer))),
            Self::List(list) if list.at != At::End => Err(Broken::Unfinished),
            Self::Unknown | Self::Events | Self::List(_) => Ok(None),
        }
    }

    /// Bytes that are kept.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Answer(answer) => answer.len(),
            Self::Unknown | Self::Events | Self::List(_) => 0,
        }
    }
}

/// Turns a list of chunks into events as its bytes arrive. The JSON of a chunk is not checked here.
#[derive(Debug, Default)]
pub(crate) struct ChunkList {
    at: At,
    /// Open objects and arrays of the chunk.
    depth: usize,
}

/// Where in the list the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    #[default]
    Start,
    BeforeFirst,
    BehindComma,
    Chunk,
    String,
    /// Behind a backslash in a string.
    Escape,
    BehindChunk,
    End,
}

impl ChunkList {
    fn take(&mut self, bytes: &[u8]) -> Result<Bytes, Broken> {
        let mut events = Vec::with_capacity(bytes.len() + 16);
        for &byte in bytes {
            self.at = match (self.at, byte) {
                (At::Chunk | At::String | At::Escape, b'\n' | b'\r') => {
                    // Between tokens a space is as good as a line end. In a string neither is valid,
                    // and a reader would not see that of a line end.
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
                    return Err(Broken::malformed("the answer is no list of objects"));
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

    /// Where the list is behind a byte of a chunk that is not inside a string.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn events(list: &str) -> Result<String, Broken> {
        let mut body = Body::default();
        let mut events = String::new();
        // Byte by byte, because it may be split anywhere.
        for byte in list.bytes() {
            let taken = body.take(Dialect::Generate, Bytes::copy_from_slice(&[byte]))?;
            events.push_str(std::str::from_utf8(&taken.unwrap_or_default()).unwrap());
        }
        body.take_answer()?;
        Ok(events)
    }

    #[test]
    fn chunks_of_a_list_become_events() {
        for (list, expected) in [
            ("[]", ""),
            (
                " [ {\"a\":[1,\n2]}\r\n,{\"b\":\"]},\\\"\"} ] \n",
                "data: {\"a\":[1, 2]}\n\ndata: {\"b\":\"]},\\\"\"}\n\n",
            ),
            ("[{\"a\":{\"b\":{}}}]", "data: {\"a\":{\"b\":{}}}\n\n"),
        ] {
            assert_eq!(events(list).unwrap(), expected, "{list}");
        }
        for broken in [
            "[1,1]",
            "[[{}]]",
            "[{}{}]",
            "[{}",
            "[{\"a\":\"]",
            "[{}]]",
            "[,{}]",
            "[null]",
            "[{},]",
        ] {
            assert!(events(broken).is_err(), "{broken}");
        }
        // What is no JSON in a chunk stays none.
        assert!(events("[{\"a\":\"\n\"}]").unwrap().contains('\0'));
    }
}
