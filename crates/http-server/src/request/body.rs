//! Reads request bodies within their limits of size, time and memory.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use engine::MemoryShare;
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use protocol::multipart::{self, Form};
use protocol::{Code, Failure};
use store::{Media, MediaError, Upload};
use tokio::time::{Instant, timeout_at};
use upstream::SpoolFile;

use super::body_memory::{BodyCharge, MemoryAccount};
use crate::connection::withhold_self_wake;
use crate::limits::BodyLimits;

/// The maximum size of the first buffer. The announced length may be larger, but a `Content-Length` may be false.
const RESERVE_BYTES_MAX: usize = 1 << 20;
/// A full buffer grows by up to this many times its content, if the announced length is that large.
const RESERVE_GROWTH: usize = 4;

/// If a file in a form is larger than this, it is written to disk, in pieces larger than [`SPOOL_PIECE_BYTES`] except
/// the last.
const SPOOLED_FROM_BYTES: usize = 1 << 20;
const SPOOL_PIECE_BYTES: usize = 256 << 10;

pub(crate) async fn read(
    mut body: Incoming,
    limits: BodyLimits,
    account: MemoryAccount<'_>,
) -> Result<Bytes, Failure> {
    let length = announced_length(&body, limits)?;
    let mut charge = BodyCharge::begin(account, length, limits.bytes_max).await?;
    // A small body arrives with its head, and then needs no wait and no timer.
    let mut waiting: Option<Instant> = None;
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    loop {
        let Some(piece) = next_piece(&mut body, limits, &mut waiting).await? else {
            break;
        };
        let held = first.len() + joined.len();
        if held + piece.len() > limits.bytes_max {
            return Err(too_large(limits.bytes_max));
        }
        charge.cover(held + piece.len()).await?;
        if held == 0 {
            first = piece;
            continue;
        }
        if joined.is_empty() {
            joined.reserve(length.unwrap_or(0).min(RESERVE_BYTES_MAX));
            joined.extend_from_slice(&std::mem::take(&mut first));
        }
        // If the announced length allows it, the buffer more than doubles, because each growth copies the body and
        // briefly holds it twice.
        if joined.len() + piece.len() > joined.capacity() {
            let left = length.unwrap_or(0).saturating_sub(joined.len());
            joined.reserve(left.min(RESERVE_GROWTH * joined.len()).max(piece.len()));
        }
        joined.extend_from_slice(&piece);
    }
    let whole = if joined.is_empty() {
        first
    } else {
        joined.freeze()
    };
    Ok(charge.into_share().charge(whole))
}

/// Reads a form into memory. Its files stay in the pieces in which they arrived, unless these are small.
pub(crate) async fn read_form(
    mut body: Incoming,
    mut reader: multipart::Reader,
    limits: BodyLimits,
    account: MemoryAccount<'_>,
) -> Result<(Form, MemoryShare), Failure> {
    let length = announced_length(&body, limits)?;
    let mut charge = BodyCharge::begin(account, length, limits.bytes_max).await?;
    let mut waiting = None;
    let mut held = 0;
    while let Some(piece) = next_piece(&mut body, limits, &mut waiting).await? {
        held += piece.len();
        if held > limits.bytes_max {
            return Err(too_large(limits.bytes_max));
        }
        charge.cover(held).await?;
        reader.push(piece)?;
    }
    Ok((reader.finish()?, charge.into_share()))
}

/// Reads a form, and writes its file of this name to disk if the file is large. The disk space is charged to the
/// wallet, so that one caller leaves room for other callers and for media.
pub(crate) async fn read_spooled_form(
    mut body: Incoming,
    mut reader: multipart::Reader,
    name: &str,
    limits: BodyLimits,
    account: MemoryAccount<'_>,
    media: &Media,
) -> Result<(Form, Option<engine::Upload>, MemoryShare), Failure> {
    let length = announced_length(&body, limits)?;
    let mut charge = BodyCharge::begin(account, length, SPOOLED_FROM_BYTES).await?;
    let mut waiting = None;
    let mut received = 0;
    let mut upload: Option<Upload> = None;
    let mut disk = account.caller.uploads().share();
    while let Some(piece) = next_piece(&mut body, limits, &mut waiting).await? {
        received += piece.len();
        if received > limits.bytes_max {
            return Err(too_large(limits.bytes_max));
        }
        reader.push(piece)?;
        let held_max = match upload {
            None => SPOOLED_FROM_BYTES,
            Some(_) => SPOOL_PIECE_BYTES,
        };
        let file_bytes = reader.file_bytes(name);
        if file_bytes > held_max {
            charge_disk(&mut disk, file_bytes)?;
            let open = match upload.take() {
                Some(open) => open,
                None => media.upload().await.map_err(spool_failed)?,
            };
            let written = open.write(reader.drain(name)?).await;
            upload = Some(written.map_err(spool_failed)?);
        }
        let spooled = upload.as_ref().map_or(0, Upload::bytes);
        let spooled = usize::try_from(spooled).unwrap_or(usize::MAX);
        let held = received.saturating_sub(spooled);
        charge.cover(held).await?;
        charge.release_beyond(held);
    }
    let mut form = reader.finish()?;
    let upload = match upload {
        Some(open) => {
            let rest = form.drain(name);
            charge_disk(&mut disk, rest.iter().map(Bytes::len).sum())?;
            let whole = open.write(rest).await.map_err(spool_failed)?;
            let bytes = whole.bytes();
            let file = SpoolFile::new(whole.into_file(), bytes);
            Some(engine::Upload { file, share: disk })
        }
        None => None,
    };
    Ok((form, upload, charge.into_share()))
}

fn charge_disk(disk: &mut MemoryShare, bytes: usize) -> Result<(), Failure> {
    disk.try_grow(bytes).map_err(|_| {
        let message = "The uploads of this wallet already take all the disk space they may.";
        Failure::new(Code::ConcurrencyLimitExceeded, message).retry_soon()
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn spool_failed(error: MediaError) -> Failure {
    tracing::error!(%error, "an upload could not be written to the disk");
    Failure::unavailable("The service cannot keep the upload for now.").retry_soon()
}

/// The length that the head announces; an error if it exceeds the limit.
fn announced_length(body: &Incoming, limits: BodyLimits) -> Result<Option<usize>, Failure> {
    let length = body.size_hint().exact();
    let length = length.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if length.is_some_and(|bytes| bytes > limits.bytes_max) {
        return Err(too_large(limits.bytes_max));
    }
    Ok(length)
}

/// The next piece of data; `None` at the end.
async fn next_piece(
    body: &mut Incoming,
    limits: BodyLimits,
    waiting: &mut Option<Instant>,
) -> Result<Option<Bytes>, Failure> {
    // A body of known length ends with its last byte, without another poll.
    while !body.is_end_stream() {
        let ready = poll_fn(|cx| Poll::Ready(poll_body(body, cx))).await;
        let frame = match ready {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let now = Instant::now();
                let total = *waiting.get_or_insert(now + limits.total);
                let until = total.min(now + limits.idle);
                timeout_at(until, poll_fn(|cx| poll_body(body, cx)))
                    .await
                    .map_err(|_| Failure::request_timeout())?
            }
        };
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                // Trailers are ignored.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(_)) => return Err(Failure::invalid("The request body broke off.")),
        }
    }
    Ok(None)
}

/// Polls the body, and wakes the connection only if more of the body will come.
fn poll_body(
    body: &mut Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    let (frame, was_woken) = withhold_self_wake(cx, |cx| Pin::new(&mut *body).poll_frame(cx));
    if was_woken && !body.is_end_stream() {
        cx.waker().wake_by_ref();
    }
    frame
}

fn too_large(bytes_max: usize) -> Failure {
    Failure::request_too_large(u64::try_from(bytes_max).unwrap_or(u64::MAX))
}
