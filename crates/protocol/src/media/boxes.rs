//! Reads the boxes of an ISO base media file.

use super::file_error::Invalid;

/// The longest header: size, type, and the size again in 64 bits.
pub(super) const HEADER_BYTES_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BoxHead {
    pub(super) kind: [u8; 4],
    pub(super) header_bytes: u64,
    /// The size of header and payload.
    pub(super) bytes: u64,
}

impl BoxHead {
    /// Reads the header at the start of `bytes`, for a box with `room` bytes up to the end of its
    /// parent.
    pub(super) fn read(bytes: &[u8], room: u64) -> Result<Self, Invalid> {
        let size = be32(bytes, 0).ok_or(Invalid::Truncated)?;
        let kind = four_bytes(bytes, 4).ok_or(Invalid::Truncated)?;
        let (header_bytes, bytes) = match size {
            // The box extends to the end of its parent.
            0 => (8, room),
            1 => (16, be64(bytes, 8).ok_or(Invalid::Truncated)?),
            size => (8, u64::from(size)),
        };
        if bytes < header_bytes {
            return Err(Invalid::Size);
        }
        if bytes > room {
            return Err(Invalid::Truncated);
        }
        Ok(Self {
            kind,
            header_bytes,
            bytes,
        })
    }
}

/// The consecutive boxes of a payload.
#[derive(Debug)]
pub(super) struct Boxes<'b> {
    rest: &'b [u8],
    left: usize,
}

impl<'b> Boxes<'b> {
    pub(super) fn of(payload: &'b [u8], count_max: usize) -> Self {
        Self {
            rest: payload,
            left: count_max,
        }
    }

    fn take(&mut self) -> Result<([u8; 4], &'b [u8]), Invalid> {
        self.left = self.left.checked_sub(1).ok_or(Invalid::TooMany)?;
        let room = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let head = BoxHead::read(self.rest, room)?;
        let header_bytes = usize::try_from(head.header_bytes).map_err(|_| Invalid::Size)?;
        let bytes = usize::try_from(head.bytes).map_err(|_| Invalid::Size)?;
        let (whole, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or(Invalid::Truncated)?;
        self.rest = rest;
        let payload = whole.get(header_bytes..).ok_or(Invalid::Size)?;
        Ok((head.kind, payload))
    }
}

impl<'b> Iterator for Boxes<'b> {
    type Item = Result<([u8; 4], &'b [u8]), Invalid>;

    /// The type and payload of the next box. Nothing follows an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let taken = self.take();
        if taken.is_err() {
            self.rest = &[];
        }
        Some(taken)
    }
}

pub(super) fn four_bytes(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    four_bytes(bytes, at).map(u32::from_be_bytes)
}

pub(super) fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_within_its_parent() {
        let head = |header_bytes, bytes| {
            Ok(BoxHead {
                kind: *b"mdat",
                header_bytes,
                bytes,
            })
        };
        for (bytes, room, expected) in [
            (&b"\0\0\0\x10mdat"[..], 16, head(8, 16)),
            (b"\0\0\0\x08mdat", 16, head(8, 8)),
            (b"\0\0\0\0mdat", 99, head(8, 99)),
            (b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x10", 16, head(16, 16)),
            (b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x0f", 16, Err(Invalid::Size)),
            (b"\0\0\0\x01mdat\0\0\0", 16, Err(Invalid::Truncated)),
            (b"\0\0\0\x07mdat", 16, Err(Invalid::Size)),
            (b"\0\0\0\x11mdat", 16, Err(Invalid::Truncated)),
            (b"\xff\xff\xff\xffmdat", 16, Err(Invalid::Truncated)),
            (b"\0\0\0\x08mda", 16, Err(Invalid::Truncated)),
        ] {
            assert_eq!(BoxHead::read(bytes, room), expected, "{bytes:?}");
        }
    }
}
