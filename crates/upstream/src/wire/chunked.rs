//! Reads the chunked transfer coding (RFC 9112 section 7.1), without copying large chunks.

use bytes::{Buf, Bytes, BytesMut};

use super::malformed::Malformed;

/// The maximum length of a chunk's size line, including extensions, which are ignored.
const SIZE_LINE_BYTES_MAX: usize = 1024;
/// The maximum size of all trailer fields, which are ignored.
const TRAILER_BYTES_MAX: usize = 16 * 1024;
/// Chunks up to this size are moved next to the previous chunk, so that both form one piece. For
/// larger chunks, moving costs more than handling two pieces.
const JOINED_BYTES_MAX: usize = 4096;

/// The position of the reader in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunked {
    /// At the start of a size line.
    Size,
    /// Inside a chunk, with this many bytes left.
    Data(u64),
    /// At the line break after a chunk.
    DataEnd,
    /// After the last chunk; this many bytes of trailer fields have been skipped.
    Trailer(usize),
    /// After the end of the body.
    Ended,
}

impl Chunked {
    /// Takes the data of all chunks in `buf` as one piece. Incomplete parts of the coding stay in
    /// `buf`. `None` means that more bytes are needed or that the body has ended.
    pub(crate) fn take(&mut self, buf: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
        // `buf` starts with `joined` bytes of data; the unread part of the coding starts at `at`.
        let mut joined = 0;
        let mut at = 0;
        let result = loop {
            match self.step(buf, &mut joined, &mut at) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(malformed) => break Err(malformed),
            }
        };
        let data = (joined > 0).then(|| buf.split_to(joined).freeze());
        buf.advance(at - joined);
        // Return the valid data first. The next call finds the same error again.
        match result {
            Err(malformed) if data.is_none() => Err(malformed),
            _ => Ok(data),
        }
    }

    /// Reads one part of the coding. Returns false if the data must be returned first or more bytes
    /// are needed.
    fn step(
        &mut self,
        buf: &mut BytesMut,
        joined: &mut usize,
        at: &mut usize,
    ) -> Result<bool, Malformed> {
        let rest = buf.get(*at..).unwrap_or_default();
        match *self {
            Self::Size => {
                let Some((size, line)) = size_line(rest)? else {
                    return Ok(false);
                };
                *at += line;
                *self = match size {
                    0 => Self::Trailer(0),
                    _ => Self::Data(size),
                };
            }
            Self::Data(left) => {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                if here == 0 || (*joined > 0 && here > JOINED_BYTES_MAX) {
                    return Ok(false);
                }
                if *joined == 0 {
                    buf.advance(*at);
                    *at = 0;
                } else {
                    buf.copy_within(*at..*at + here, *joined);
                }
                *joined += here;
                *at += here;
                *self = match left - here as u64 {
                    0 => Self::DataEnd,
                    left => Self::Data(left),
                };
            }
            Self::DataEnd => match rest {
                [b'\r', b'\n', ..] => {
                    *at += 2;
                    *self = Self::Size;
                }
                [] | [b'\r'] => return Ok(false),
                _ => return Err(Malformed::Chunk),
            },
            Self::Trailer(before) => {
                let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
                    if before + rest.len() > TRAILER_BYTES_MAX {
                        return Err(Malformed::Chunk);
                    }
                    return Ok(false);
                };
                let read = before + end + 1;
                if read > TRAILER_BYTES_MAX {
                    return Err(Malformed::Chunk);
                }
                *self = match rest.get(..end) {
                    Some(b"\r") => Self::Ended,
                    Some([.., b'\r']) => Self::Trailer(read),
                    _ => return Err(Malformed::Chunk),
                };
                *at += end + 1;
            }
            Self::Ended => return Ok(false),
        }
        Ok(true)
    }
}

/// The size of a chunk and the length of its line; `None` if the line is incomplete.
fn size_line(bytes: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
        if bytes.len() > SIZE_LINE_BYTES_MAX {
            return Err(Malformed::Chunk);
        }
        return Ok(None);
    };
    let line = match bytes.get(..end) {
        Some([line @ .., b'\r']) if end <= SIZE_LINE_BYTES_MAX => line,
        _ => return Err(Malformed::Chunk),
    };
    let digits = line
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let (size, extension) = line.split_at(digits);
    // A size of fifteen digits is larger than any body and cannot overflow.
    if size.is_empty() || size.len() > 15 {
        return Err(Malformed::Chunk);
    }
    if !matches!(extension, [] | [b';' | b' ' | b'\t', ..]) || extension.contains(&b'\r') {
        return Err(Malformed::Chunk);
    }
    let size = size.iter().fold(0, |size, &digit| {
        size * 16 + u64::from(char::from(digit).to_digit(16).unwrap_or_default())
    });
    Ok(Some((size, end + 1)))
}
