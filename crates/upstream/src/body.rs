//! An answer's body, with its deadlines.

use std::task::{Context, Poll};

use bytes::Bytes;

use crate::error::CallError;

/// The body of an answer.
#[derive(Debug)]
pub struct Body {}

impl Body {
    /// The next piece, or `None` at the body's proper end.
    pub fn poll_next(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CallError>>> {
        Poll::Ready(None)
    }

    /// The next piece, or `None` at the body's proper end.
    pub async fn next(&mut self) -> Option<Result<Bytes, CallError>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The whole body, at most `limit` bytes of it.
    pub async fn collect(mut self, _limit: usize) -> Result<Bytes, CallError> {
        self.next().await.unwrap_or(Ok(Bytes::new()))
    }
}
