//! The body of a fetch, with a size limit.

use bytes::Bytes;

use super::error::FetchError;
use crate::error::{CallError, CallErrorKind};
use crate::response::Body;

/// The body of a fetch, as it arrives. Dropping it ends the fetch.
#[derive(Debug)]
pub struct BoundedBody {
    body: Body,
    bytes_max: u64,
    left: u64,
}

impl BoundedBody {
    /// Refuses a body whose declared length exceeds the limit.
    pub(super) fn new(body: Body, bytes_max: u64) -> Result<Self, FetchError> {
        if body.length_left().is_some_and(|length| length > bytes_max) {
            return Err(FetchError::TooLarge(bytes_max));
        }
        Ok(Self {
            body,
            bytes_max,
            left: bytes_max,
        })
    }

    /// The number of bytes left, if the server declared a length.
    pub fn length_left(&self) -> Option<u64> {
        self.body.length_left()
    }

    /// The next piece, or `None` at the end of a complete body.
    pub async fn next(&mut self) -> Option<Result<Bytes, FetchError>> {
        let piece = match self.body.next().await? {
            Ok(piece) => piece,
            Err(error) => return Some(Err(error.into())),
        };
        let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        Some(match self.left.checked_sub(length) {
            Some(left) => {
                self.left = left;
                Ok(piece)
            }
            None => Err(FetchError::TooLarge(self.bytes_max)),
        })
    }

    /// The whole body.
    pub async fn collect(self) -> Result<Bytes, FetchError> {
        let limit = usize::try_from(self.left).unwrap_or(usize::MAX);
        self.body.collect(limit).await.map_err(|error| match error {
            CallError {
                kind: CallErrorKind::TooLarge,
                ..
            } => FetchError::TooLarge(self.bytes_max),
            error => error.into(),
        })
    }
}
