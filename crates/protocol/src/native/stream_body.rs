//! Reads the body that an upstream sends when we asked for a stream: events, or JSON if the upstream does
//! not stream.

use std::mem;

use bytes::{Buf, Bytes};

use super::chunk_list::ChunkList;
use crate::dialect::Dialect;
use crate::sse::EVENT_BYTES_MAX;
use crate::unusable_answer::UnusableAnswer;

/// The format of an upstream's stream, once its first bytes show it.
#[derive(Debug, Default)]
pub(crate) enum StreamBody {
    /// Only white space so far.
    #[default]
    Unknown,
    Events,
    /// A list of the chunks of a stream, which Generate Content upstreams may send.
    List(ChunkList),
    /// A whole answer. It is converted when it is complete.
    Answer(Vec<u8>),
}

impl StreamBody {
    /// Takes the bytes of one read. Returns the bytes that belong to events, and keeps those of a whole
    /// answer.
    pub(crate) fn take(
        &mut self,
        dialect: Dialect,
        mut chunk: Bytes,
    ) -> Result<Option<Bytes>, UnusableAnswer> {
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
                    return Err(UnusableAnswer::TooLarge(EVENT_BYTES_MAX));
                }
                Ok(None)
            }
        }
    }

    /// Takes the whole answer at the end of the stream, if the body is one. Returns an error if a
    /// list has not ended.
    pub(crate) fn take_answer(&mut self) -> Result<Option<Vec<u8>>, UnusableAnswer> {
        match self {
            Self::Answer(answer) => Ok(Some(mem::take(answer))),
            Self::List(list) if !list.is_complete() => Err(UnusableAnswer::Unfinished),
            Self::Unknown | Self::Events | Self::List(_) => Ok(None),
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Answer(answer) => answer.len(),
            Self::Unknown | Self::Events | Self::List(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(list: &str) -> Result<String, UnusableAnswer> {
        let mut body = StreamBody::default();
        let mut events = String::new();
        // Byte by byte, because a list may be split anywhere.
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
        // Invalid JSON in a chunk stays invalid.
        assert!(events("[{\"a\":\"\n\"}]").unwrap().contains('\0'));
    }
}
