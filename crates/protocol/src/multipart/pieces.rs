//! The bytes of a part, in the pieces in which they arrived.

use std::ops::Deref;

use bytes::Bytes;

/// Pieces of bytes, and how many bytes they have together: a part is asked for its size at every piece of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces {
    pieces: Vec<Bytes>,
    bytes: usize,
}

impl Pieces {
    pub(super) fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        self.pieces.push(piece);
    }

    /// The number of bytes of all pieces.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn into_vec(self) -> Vec<Bytes> {
        self.pieces
    }
}

impl From<Bytes> for Pieces {
    fn from(whole: Bytes) -> Self {
        Self {
            bytes: whole.len(),
            pieces: vec![whole],
        }
    }
}

impl Deref for Pieces {
    type Target = [Bytes];

    fn deref(&self) -> &[Bytes] {
        &self.pieces
    }
}
