//! Outgoing pieces: small ones are copied together, large ones go on as they are.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// From this size on a piece is passed on as the same bytes instead of being copied.
const COPY_BYTES_MAX: usize = 4096;

/// A queue of bytes on their way out.
#[derive(Debug, Default)]
pub struct Joined {
    ready: VecDeque<Bytes>,
    tail: BytesMut,
    len: usize,
}

impl Joined {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a copy.
    pub fn copy(&mut self, piece: &[u8]) {
        self.tail.extend_from_slice(piece);
        self.len = self.len.saturating_add(piece.len());
    }

    /// Appends a piece, without copying it when it is large.
    pub fn push(&mut self, piece: Bytes) {
        if piece.len() <= COPY_BYTES_MAX {
            self.copy(&piece);
            return;
        }
        self.len = self.len.saturating_add(piece.len());
        self.close_tail();
        self.ready.push_back(piece);
    }

    /// Takes the next bytes to send.
    pub fn pop(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() {
            self.close_tail();
        }
        let piece = self.ready.pop_front()?;
        self.len = self.len.saturating_sub(piece.len());
        Some(piece)
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Everything as one piece.
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

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            self.ready.push_back(self.tail.split().freeze());
        }
    }
}
