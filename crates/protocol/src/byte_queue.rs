//! A queue of output bytes: small pieces are copied into one buffer, large pieces are passed on
//! without a copy.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// A piece up to this size is copied, because that is cheaper than a write of its own.
pub(crate) const COPY_BYTES_MAX: usize = 4096;

/// A queue of output bytes.
#[derive(Debug, Default)]
pub struct ByteQueue {
    ready: VecDeque<Bytes>,
    tail: BytesMut,
    len: usize,
}

impl ByteQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a copy.
    pub fn copy(&mut self, piece: &[u8]) {
        self.tail.extend_from_slice(piece);
        self.len = self.len.saturating_add(piece.len());
    }

    /// Appends a piece. Large pieces are not copied.
    pub fn push(&mut self, piece: Bytes) {
        if piece.len() <= COPY_BYTES_MAX {
            self.copy(&piece);
            return;
        }
        self.len = self.len.saturating_add(piece.len());
        self.close_tail();
        self.ready.push_back(piece);
    }

    /// Appends a part of `whole`. Large parts are not copied.
    pub fn share(&mut self, whole: &Bytes, span: Range<usize>) {
        match whole.get(span.clone()) {
            Some(part) if part.len() <= COPY_BYTES_MAX => self.copy(part),
            Some(_) => self.push(whole.slice(span)),
            None => debug_assert!(false, "the span lies inside the whole"),
        }
    }

    /// Reserves room for this many copied bytes, so that a batch costs one allocation.
    pub fn reserve(&mut self, bytes: usize) {
        self.tail.reserve(bytes);
    }

    /// Takes the next bytes to send.
    pub fn pop(&mut self) -> Option<Bytes> {
        let piece = match self.ready.pop_front() {
            Some(piece) => piece,
            None if self.tail.is_empty() => return None,
            None => self.tail.split().freeze(),
        };
        self.len = self.len.saturating_sub(piece.len());
        Some(piece)
    }

    /// The number of bytes in the queue.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies bytes after the first `from` into `out`, until `out` holds `bytes_max`.
    pub fn peek(&self, from: usize, bytes_max: usize, out: &mut Vec<u8>) {
        let mut passed = 0;
        let pieces = self.ready.iter().map(|piece| &piece[..]);
        for piece in pieces.chain([&self.tail[..]]) {
            let room = bytes_max.saturating_sub(out.len());
            let unread = piece.get(from.saturating_sub(passed)..).unwrap_or_default();
            out.extend_from_slice(unread.get(..room).unwrap_or(unread));
            passed += piece.len();
        }
    }

    /// All bytes as one buffer.
    pub fn into_bytes(mut self) -> Bytes {
        self.close_tail();
        if self.ready.len() <= 1 {
            return self.ready.pop_front().unwrap_or_default();
        }
        let mut whole = BytesMut::with_capacity(self.len);
        for piece in &self.ready {
            whole.extend_from_slice(piece);
        }
        whole.freeze()
    }

    /// All buffers in order, without a copy.
    pub fn into_pieces(mut self) -> Vec<Bytes> {
        self.close_tail();
        self.ready.into()
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            self.ready.push_back(self.tail.split().freeze());
        }
    }
}

impl From<Vec<u8>> for ByteQueue {
    /// A queue with one buffer, which is sent without a copy.
    fn from(whole: Vec<u8>) -> Self {
        if whole.is_empty() {
            return Self::default();
        }
        Self {
            len: whole.len(),
            ready: VecDeque::from([Bytes::from(whole)]),
            tail: BytesMut::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_are_joined_and_large_ones_shared() {
        let large = Bytes::from(vec![b'x'; COPY_BYTES_MAX + 1]);
        let mut out = ByteQueue::new();
        out.copy(b"a");
        out.push(Bytes::from_static(b"b"));
        out.push(large.clone());
        out.share(&large, 0..2);
        out.share(&large, 0..large.len());
        assert_eq!(out.len(), 2 * large.len() + 4);
        assert_eq!(out.pop().unwrap(), &b"ab"[..]);
        assert_eq!(out.pop().unwrap().as_ptr(), large.as_ptr());
        assert_eq!(out.pop().unwrap(), &b"xx"[..]);
        assert_eq!(out.pop().unwrap().as_ptr(), large.as_ptr());
        assert!(out.pop().is_none());
        assert!(out.is_empty());
    }

    #[test]
    fn a_single_buffer_is_sent_unchanged() {
        let text = b"all of it".to_vec();
        let place = text.as_ptr();
        let mut whole = ByteQueue::from(text);
        assert_eq!(whole.len(), 9);
        let piece = whole.pop().unwrap();
        assert_eq!((&piece[..], piece.as_ptr()), (&b"all of it"[..], place));
        assert!(whole.is_empty() && whole.pop().is_none());
        // An empty buffer is not a piece.
        let mut nothing = ByteQueue::from(Vec::new());
        assert!(nothing.is_empty() && nothing.pop().is_none());
    }

    #[test]
    fn queued_bytes_can_be_peeked() {
        let mut joined = ByteQueue::new();
        joined.copy(b"ab");
        joined.push(Bytes::from(vec![b'x'; COPY_BYTES_MAX + 1]));
        joined.copy(b"yz");
        let peek = |from, bytes_max| {
            let mut out = b"!".to_vec();
            joined.peek(from, bytes_max, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(peek(1, 4), "!bxx");
        assert_eq!(peek(2 + COPY_BYTES_MAX, 100), "!xyz");
        assert_eq!(peek(0, 1), "!");
        assert_eq!(peek(99_999, 9), "!");
        assert_eq!(peek(0, usize::MAX).len(), 1 + joined.len());
    }
}
