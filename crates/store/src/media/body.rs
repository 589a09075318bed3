//! The body of a medium, read on demand.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream as _, StreamExt as _};
use object_store::{GetResult, GetResultPayload};
use tokio::time::timeout;

use super::error::MediaError;
use super::spool::blocking;

/// The amount of a file that is read at once and held in memory for one reader.
const PIECE_BYTES: u64 = 64 << 10;
/// The maximum time between two pieces from the storage.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The bytes of a medium or of a range. The body yields exactly the announced number of bytes, or an error.
pub struct MediaBody {
    left: u64,
    pieces: BoxStream<'static, Result<Bytes, MediaError>>,
}

impl MediaBody {
    pub(super) fn of(result: GetResult) -> Self {
        let range = result.range;
        let left = range.end.saturating_sub(range.start);
        let pieces = match result.payload {
            GetResultPayload::File(file, _) => of_file(file, range),
            GetResultPayload::Stream(pieces) => of_stream(pieces),
        };
        Self { left, pieces }
    }

    /// The number of bytes that are still to come.
    pub fn bytes_left(&self) -> u64 {
        self.left
    }

    /// Polls for the next piece. `None` at the end.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, MediaError>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = std::task::ready!(Pin::new(&mut self.pieces).poll_next(cx));
        Poll::Ready(Some(self.count(piece)))
    }

    fn count(&mut self, piece: Option<Result<Bytes, MediaError>>) -> Result<Bytes, MediaError> {
        let piece = piece.unwrap_or(Err(MediaError::Short))?;
        let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(length).ok_or(MediaError::Short)?;
        Ok(piece)
    }
}

impl fmt::Debug for MediaBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaBody")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

fn of_file(file: File, range: Range<u64>) -> BoxStream<'static, Result<Bytes, MediaError>> {
    let next = |(file, range): (File, Range<u64>)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let read = blocking(move || {
            let length = PIECE_BYTES.min(range.end - range.start);
            let mut piece = vec![0; usize::try_from(length).unwrap_or(0)];
            file.read_exact_at(&mut piece, range.start)?;
            Ok((piece, (file, range.start + length..range.end)))
        });
        let (piece, rest) = read.await?;
        Ok(Some((Bytes::from(piece), rest)))
    };
    stream::try_unfold((file, range), next).boxed()
}

fn of_stream(
    pieces: BoxStream<'static, object_store::Result<Bytes>>,
) -> BoxStream<'static, Result<Bytes, MediaError>> {
    let next = |mut pieces: BoxStream<'static, object_store::Result<Bytes>>| async move {
        match timeout(SILENCE_MAX, pieces.next()).await {
            Ok(Some(piece)) => Ok(Some((piece?, pieces))),
            Ok(None) => Ok(None),
            Err(_) => Err(MediaError::Timeout),
        }
    };
    stream::try_unfold(pieces, next).boxed()
}
