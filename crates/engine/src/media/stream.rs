//! The response body that serves a media file.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use prometheus_client::metrics::counter::Counter;
use store::MediaBody;

use crate::failures::Aborted;

use super::reads::MediaRead;

/// The bytes of a media file, read only as fast as the client takes them.
#[derive(Debug)]
pub struct MediaStream {
    pub(super) body: MediaBody,
    pub(super) served_bytes: Counter,
    pub(super) read: MediaRead,
}

impl MediaStream {
    pub(crate) fn bytes_left(&self) -> u64 {
        self.body.bytes_left()
    }

    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Aborted>>> {
        // The connection's timers end readers that take nothing. This check ends readers that are
        // too slow.
        if self.read.is_over() {
            return Poll::Ready(Some(Err(Aborted)));
        }
        let piece = ready!(self.body.poll_piece(cx));
        Poll::Ready(piece.map(|piece| {
            let piece = piece.map_err(|error| {
                tracing::warn!(%error, "a medium could not be read to its end");
                Aborted
            })?;
            let bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            self.served_bytes.inc_by(bytes);
            Ok(piece)
        }))
    }
}
