//! Finds the end of a response body.

use bytes::{Bytes, BytesMut};

use super::chunked::Chunked;
use super::malformed::Malformed;

/// The way in which the end of a body is marked, and the progress of reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The body has a declared length, of which this many bytes are left.
    Length(u64),
    Chunked(Chunked),
    /// The body ends when the upstream closes the connection.
    UntilClose,
    /// A body of the kind `UntilClose` has ended.
    Closed,
}

impl Framing {
    /// Takes the part of the body that is in `buf`. `None` means that more bytes are needed or that
    /// the body has ended.
    pub(crate) fn take(&mut self, buf: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
        match self {
            Self::Chunked(chunked) => chunked.take(buf),
            Self::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(buf.len());
                *left -= here as u64;
                Ok((here > 0).then(|| buf.split_to(here).freeze()))
            }
            Self::UntilClose => Ok((!buf.is_empty()).then(|| buf.split().freeze())),
            Self::Closed => Ok(None),
        }
    }

    /// Handles a close by the upstream. It is an error if the body is incomplete.
    pub(crate) fn close(&mut self) -> Result<(), Malformed> {
        if *self == Self::UntilClose {
            *self = Self::Closed;
        }
        if self.has_ended() {
            Ok(())
        } else {
            Err(Malformed::Truncated)
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(
            self,
            Self::Length(0) | Self::Chunked(Chunked::Ended) | Self::Closed
        )
    }

    /// The number of bytes left, if it is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match *self {
            Self::Length(left) => Some(left),
            _ if self.has_ended() => Some(0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads `wire` in pieces of the given sizes.
    fn read(
        mut framing: Framing,
        wire: &[u8],
        cuts: &[usize],
    ) -> (Vec<u8>, Result<bool, Malformed>, usize) {
        let mut buf = BytesMut::new();
        let mut data = Vec::new();
        let mut rest = wire;
        let mut cuts = cuts.iter().copied().chain(std::iter::repeat(usize::MAX));
        loop {
            loop {
                match framing.take(&mut buf) {
                    Ok(Some(piece)) => {
                        assert!(!piece.is_empty());
                        data.extend_from_slice(&piece);
                    }
                    Ok(None) => break,
                    Err(malformed) => return (data, Err(malformed), buf.len() + rest.len()),
                }
            }
            if framing.has_ended() || rest.is_empty() {
                return (data, Ok(framing.has_ended()), buf.len() + rest.len());
            }
            let (piece, after) = rest.split_at(cuts.next().unwrap().clamp(1, rest.len()));
            buf.extend_from_slice(piece);
            rest = after;
        }
    }

    const CHUNKED: Framing = Framing::Chunked(Chunked::Size);

    #[test]
    fn chunked_bodies_are_read() {
        for (wire, data) in [
            ("0\r\n\r\n", ""),
            ("5\r\nhello\r\n0\r\n\r\n", "hello"),
            ("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"),
            ("A\r\n0123456789\r\n00\r\n\r\n", "0123456789"),
            ("a;name=value\r\n0123456789\r\n0 \r\n\r\n", "0123456789"),
            ("1\r\nx\r\n0\r\nsome: trailer\r\nmore: too\r\n\r\n", "x"),
        ] {
            for cut in 1..=wire.len() {
                let (found, end, left) = read(CHUNKED, wire.as_bytes(), &vec![cut; wire.len()]);
                assert_eq!(
                    (found.as_slice(), end, left),
                    (data.as_bytes(), Ok(true), 0),
                    "{wire:?} by {cut}"
                );
            }
        }
    }

    #[test]
    fn bad_chunks_are_reported_after_the_good_ones() {
        let endless = format!("{}\r\n", "1".repeat(16));
        let extension = format!("5;{}\r\n", "x".repeat(2000));
        let trailer = format!("0\r\n{}\r\n", "x".repeat(17_000));
        for (wire, data) in [
            ("x\r\n", ""),
            ("\r\n", ""),
            ("-1\r\n", ""),
            ("5\nhello\r\n", ""),
            ("5\r\nhello!\r\n", "hello"),
            ("5\r\nhello\n", "hello"),
            ("5\r\nhello\r\nzz\r\n", "hello"),
            ("0\r\nbad\n\r\n", ""),
            ("5;a\rb\r\nhello", ""),
            (&endless, ""),
            (&extension, ""),
            (&trailer, ""),
        ] {
            for cut in [1, 3, usize::MAX] {
                let (found, end, _) = read(CHUNKED, wire.as_bytes(), &vec![cut; wire.len()]);
                assert_eq!(
                    (found.as_slice(), end),
                    (data.as_bytes(), Err(Malformed::Chunk)),
                    "{wire:?} by {cut}"
                );
            }
        }
    }

    #[test]
    fn a_body_that_breaks_off_is_an_error() {
        for (framing, wire) in [
            (CHUNKED, "5\r\nhello\r\n"),
            (CHUNKED, "5\r\nhel"),
            (CHUNKED, "5\r\nhello\r\n0\r\n"),
            (CHUNKED, ""),
            (Framing::Length(6), "hello"),
        ] {
            let mut framing = framing;
            let mut buf = BytesMut::from(wire);
            while framing.take(&mut buf).unwrap().is_some() {}
            assert_eq!(framing.close(), Err(Malformed::Truncated), "{wire:?}");
        }
        assert_eq!(Framing::UntilClose.close(), Ok(()));
        assert_eq!(Framing::Length(0).close(), Ok(()));
    }

    #[test]
    fn bytes_after_the_end_are_left_alone() {
        assert_eq!(
            read(CHUNKED, b"1\r\nx\r\n0\r\n\r\nHTTP/1.1", &[]),
            (b"x".to_vec(), Ok(true), 8)
        );
        assert_eq!(
            read(Framing::Length(3), b"abcdef", &[]),
            (b"abc".to_vec(), Ok(true), 3)
        );
    }

    #[test]
    fn small_chunks_of_one_read_come_as_one_piece_and_large_ones_alone() {
        let large = "z".repeat(10_000);
        let wire = format!("1\r\na\r\n2\r\nbc\r\n2710\r\n{large}\r\n1\r\nd\r\n0\r\n\r\n");
        let mut buf = BytesMut::from(wire.as_str());
        let mut framing = CHUNKED;
        let mut sizes = Vec::new();
        while let Some(piece) = framing.take(&mut buf).unwrap() {
            sizes.push(piece.len());
        }
        assert_eq!(sizes, [3, 10_001]);
        assert!(framing.has_ended() && buf.is_empty());
    }

    proptest! {
        #[test]
        fn the_data_does_not_depend_on_the_cuts(
            sizes in prop::collection::vec(1usize..5000, 0..5),
            cuts in prop::collection::vec(1usize..3000, 0..20),
        ) {
            let chunks: Vec<Vec<u8>> = sizes
                .iter()
                .map(|&size| (0..=u8::MAX).cycle().skip(size % 7).take(size).collect())
                .collect();
            let mut wire = Vec::new();
            for chunk in &chunks {
                wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let data = chunks.concat();
            prop_assert_eq!(read(CHUNKED, &wire, &cuts), (data.clone(), Ok(true), 0));
            let length = Framing::Length(data.len() as u64);
            prop_assert_eq!(read(length, &data, &cuts), (data, Ok(true), 0));
        }

        #[test]
        fn hostile_bytes_never_panic_and_give_the_same_for_every_cut(
            wire in prop::collection::vec(prop_oneof![
                Just(b'\r'), Just(b'\n'), Just(b'0'), Just(b'2'), Just(b'f'), Just(b';'), any::<u8>(),
            ], 0..200),
            cuts in prop::collection::vec(1usize..20, 0..40),
        ) {
            let (data, end, left) = read(CHUNKED, &wire, &cuts);
            let (whole, whole_end, whole_left) = read(CHUNKED, &wire, &[]);
            prop_assert_eq!((data, end), (whole, whole_end));
            if end == Ok(true) {
                prop_assert_eq!(left, whole_left);
            }
        }
    }
}
