//! The subset of WebSocket that the upstream and the load generator use.
//!
//! Every message is one frame. Pings are not answered, because the audio already shows that the
//! connection is alive.

use std::io;
use std::ops::Range;

/// A mask that changes nothing. Client frames must be masked, and this mask saves the load
/// generator CPU time.
const NO_MASK: [u8; 4] = [0; 4];
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
/// Values of the length byte which mean that the length follows in two or in eight bytes.
const IN_TWO: u8 = 0x7e;
const IN_EIGHT: u8 = 0x7f;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Binary,
    Close,
    PingOrPong,
}

/// The sender of a frame. Clients must mask their frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Server,
}

pub(crate) fn write(kind: Kind, sender: Sender, payload: &[u8]) -> Vec<u8> {
    let opcode = match kind {
        Kind::Text => 1,
        Kind::Binary => 2,
        Kind::Close => 8,
        Kind::PingOrPong => 9,
    };
    let mut frame = vec![FINAL | opcode];
    let masked = match sender {
        Sender::Client => MASKED,
        Sender::Server => 0,
    };
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length @ ..IN_TWO), _) => frame.push(masked | length),
        (_, Ok(length)) => {
            frame.push(masked | IN_TWO);
            frame.extend(length.to_be_bytes());
        }
        _ => {
            frame.push(masked | IN_EIGHT);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    if sender == Sender::Client {
        frame.extend(NO_MASK);
    }
    frame.extend_from_slice(payload);
    frame
}

/// The kind of a frame, and the position of its payload in the bytes passed to `read`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    mask: [u8; 4],
    pub(crate) payload: Range<usize>,
}

impl Frame {
    /// Reads the frame at the start of `bytes`; `None` if it is incomplete.
    pub(crate) fn read(bytes: &[u8]) -> io::Result<Option<Self>> {
        let Some((&[first, second], rest)) = bytes.split_first_chunk() else {
            return Ok(None);
        };
        let kind = match first {
            0x81 => Kind::Text,
            0x82 => Kind::Binary,
            0x88 => Kind::Close,
            0x89 | 0x8a => Kind::PingOrPong,
            _ => return Err(io::Error::other("a frame that is no whole message")),
        };
        let length = match second & !MASKED {
            IN_TWO => rest
                .first_chunk()
                .map(|&it| (u16::from_be_bytes(it).into(), 2)),
            IN_EIGHT => rest.first_chunk().map(|&it| (u64::from_be_bytes(it), 8)),
            length => Some((length.into(), 0)),
        };
        let Some((length, length_bytes)) = length else {
            return Ok(None);
        };
        let mut start = 2 + length_bytes;
        let mut mask = NO_MASK;
        if second & MASKED != 0 {
            let Some(&key) = bytes.get(start..).and_then(<[u8]>::first_chunk) else {
                return Ok(None);
            };
            mask = key;
            start += mask.len();
        }
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let payload = start..start.saturating_add(length);
        Ok((payload.end <= bytes.len()).then_some(Self {
            kind,
            mask,
            payload,
        }))
    }

    /// Unmasks the `N` bytes at offset `at` of the payload.
    pub(crate) fn piece<const N: usize>(&self, bytes: &[u8], at: usize) -> Option<[u8; N]> {
        let payload = bytes.get(self.payload.clone())?;
        let mut piece: [u8; N] = *payload.get(at..)?.first_chunk()?;
        for (index, byte) in piece.iter_mut().enumerate() {
            *byte ^= self.mask[(at + index) % self.mask.len()];
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_frame_is_read_once_it_is_complete() {
        for sender in [Sender::Client, Sender::Server] {
            for (kind, length) in [
                (Kind::Text, 0),
                (Kind::Close, 2),
                (Kind::PingOrPong, 125),
                (Kind::Binary, 126),
                (Kind::Text, 1344),
                (Kind::Text, 65_535),
                (Kind::Binary, 65_536),
            ] {
                let payload: Vec<u8> = (0..=250).cycle().take(length).collect();
                let frame = write(kind, sender, &payload);
                for end in [0, 1, 2, 3, frame.len() - 1] {
                    assert_eq!(
                        Frame::read(&frame[..end.min(frame.len() - 1)]).unwrap(),
                        None
                    );
                }
                let read = Frame::read(&frame).unwrap().unwrap();
                assert_eq!(read.kind, kind);
                assert_eq!(&frame[read.payload], payload);
            }
        }
    }

    #[test]
    fn a_piece_is_unmasked_at_any_position() {
        let mask = [1, 2, 3, 4];
        let payload = *b"0123456789";
        let mut frame = vec![0x82, MASKED | 0x0a];
        frame.extend(mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b));
        let read = Frame::read(&frame).unwrap().unwrap();
        for at in 0..=7 {
            assert_eq!(read.piece::<3>(&frame, at).unwrap(), payload[at..at + 3]);
        }
        assert_eq!(read.piece::<3>(&frame, 8), None);
    }

    #[test]
    fn messages_in_pieces_are_errors() {
        for first in [0x01, 0x00, 0x80, 0xc1] {
            assert!(Frame::read(&[first, 0]).is_err());
        }
    }
}
