//! Reads a request body into memory, within its limits of size, time and node memory.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use engine::MemoryShare;
use http::{HeaderMap, header};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use protocol::Failure;
use protocol::multipart::{self, Form};
use store::{Media, MediaError, Upload};
use tokio::time::{Instant, timeout_at};
use upstream::SpoolFile;

use super::body_memory::{BodyCharge, Payer};
use crate::http::connection::self_wake;

/// No more is set aside before the bytes are there: a length is only a claim.
const RESERVE_BYTES_MAX: usize = 1 << 20;
/// A body grows to so many times what has arrived, if it claims to be that long.
const RESERVE_GROWTH: usize = 4;

/// A file in a form that is larger than this goes to the disk, in pieces of at least that size.
const SPOOLED_FROM_BYTES: usize = 1 << 20;
const SPOOLED_AT_ONCE_BYTES: usize = 256 << 10;

/// The bounds of one body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) bytes_max: usize,
    /// The longest silence between two pieces.
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
}

/// Refuses what the headers alone tell: encodings and forms that a JSON endpoint does not take.
pub(crate) fn check_json_headers(headers: &HeaderMap) -> Result<(), Failure> {
    check_plain(headers)?;
    if is_multipart(headers) {
        return Err(Failure::unsupported_media_type(
            "This endpoint does not take a body of this type; send JSON.",
        ));
    }
    Ok(())
}

/// Whether the body is a form. No other kind of `multipart` is one.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    media_type(headers).eq_ignore_ascii_case(b"multipart/form-data")
}

fn is_multipart(headers: &HeaderMap) -> bool {
    let start = media_type(headers).get(..10);
    start.is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/"))
}

/// The type of the body, without its parameters.
fn media_type(headers: &HeaderMap) -> &[u8] {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value.map_or(&b""[..], |value| value.as_bytes());
    let mut parts = value.split(|byte| *byte == b';');
    parts.next().unwrap_or_default().trim_ascii()
}

/// What reads the form that the headers announce.
pub(crate) fn form_reader(headers: &HeaderMap) -> Result<multipart::Reader, Failure> {
    check_plain(headers)?;
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let boundary = multipart::boundary_of(content_type.unwrap_or_default())?;
    Ok(multipart::Reader::new(&boundary))
}

/// Bodies come as they are; transfer codings but chunks were refused with their framing.
fn check_plain(headers: &HeaderMap) -> Result<(), Failure> {
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(Failure::unsupported_media_type(
            "Request bodies are taken without Content-Encoding.",
        ));
    }
    Ok(())
}

/// Reads the whole body.
pub(crate) async fn read(
    mut body: Incoming,
    bounds: Bounds,
    payer: Payer<'_>,
) -> Result<Bytes, Failure> {
    let length = within_bounds(&body, bounds)?;
    let mut charge = BodyCharge::begin(payer, length, bounds.bytes_max).await?;
    // A small body has arrived with its head: then there is nothing to wait for, and no timer.
    let mut waiting: Option<Instant> = None;
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    loop {
        let Some(piece) = next_piece(&mut body, bounds, &mut waiting).await? else {
            break;
        };
        let held = first.len() + joined.len();
        if held + piece.len() > bounds.bytes_max {
            return Err(too_large(bounds.bytes_max));
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
        // A claim that has come true so far gets more room at once than doubling would give it,
        // which copies and for a moment holds a large body twice.
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

/// Reads a form whose files stay in the pieces they came in, and the memory they take.
pub(crate) async fn read_form(
    mut body: Incoming,
    mut reader: multipart::Reader,
    bounds: Bounds,
    payer: Payer<'_>,
) -> Result<(Form, MemoryShare), Failure> {
    let length = within_bounds(&body, bounds)?;
    let mut charge = BodyCharge::begin(payer, length, bounds.bytes_max).await?;
    let mut waiting = None;
    let mut held = 0;
    while let Some(piece) = next_piece(&mut body, bounds, &mut waiting).await? {
        held += piece.len();
        if held > bounds.bytes_max {
            return Err(too_large(bounds.bytes_max));
        }
        charge.cover(held).await?;
        reader.push(piece)?;
    }
    Ok((reader.finish()?, charge.into_share()))
}

/// Reads a form whose file of this name goes to the disk when it is large; what is held meanwhile is
/// charged to the budget.
pub(crate) async fn read_spooled_form(
    mut body: Incoming,
    mut reader: multipart::Reader,
    name: &str,
    bounds: Bounds,
    payer: Payer<'_>,
    media: &Media,
) -> Result<(Form, Option<SpoolFile>, MemoryShare), Failure> {
    let length = within_bounds(&body, bounds)?;
    let mut charge = BodyCharge::begin(payer, length, SPOOLED_FROM_BYTES).await?;
    let mut waiting = None;
    let mut came = 0;
    let mut upload: Option<Upload> = None;
    while let Some(piece) = next_piece(&mut body, bounds, &mut waiting).await? {
        came += piece.len();
        if came > bounds.bytes_max {
            return Err(too_large(bounds.bytes_max));
        }
        reader.push(piece)?;
        let held_max = match upload {
            None => SPOOLED_FROM_BYTES,
            Some(_) => SPOOLED_AT_ONCE_BYTES,
        };
        if reader.file_bytes(name) > held_max {
            let begun = match upload.take() {
                Some(begun) => begun,
                None => media.upload().await.map_err(not_kept)?,
            };
            let written = begun.write(reader.drain(name)).await;
            upload = Some(written.map_err(not_kept)?);
        }
        let spooled = upload.as_ref().map_or(0, Upload::bytes);
        let spooled = usize::try_from(spooled).unwrap_or(usize::MAX);
        let held = came.saturating_sub(spooled);
        charge.cover(held).await?;
        charge.release_beyond(held);
    }
    let spool = match upload {
        Some(begun) => {
            let whole = begun.write(reader.drain(name)).await.map_err(not_kept)?;
            let bytes = whole.bytes();
            Some(SpoolFile::new(whole.into_file(), bytes))
        }
        None => None,
    };
    Ok((reader.finish()?, spool, charge.into_share()))
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn not_kept(error: MediaError) -> Failure {
    tracing::error!(%error, "an upload could not be kept on the disk");
    Failure::unavailable("The service cannot keep the upload for now.").retry_after(1)
}

/// The length that the head tells, if it may be so long.
fn within_bounds(body: &Incoming, bounds: Bounds) -> Result<Option<usize>, Failure> {
    let length = body.size_hint().exact();
    let length = length.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if length.is_some_and(|bytes| bytes > bounds.bytes_max) {
        return Err(too_large(bounds.bytes_max));
    }
    Ok(length)
}

/// The next data piece; `None` at the end.
async fn next_piece(
    body: &mut Incoming,
    bounds: Bounds,
    waiting: &mut Option<Instant>,
) -> Result<Option<Bytes>, Failure> {
    // A body whose length was told ends with its last byte.
    while !body.is_end_stream() {
        let ready = poll_fn(|cx| Poll::Ready(poll_body(body, cx))).await;
        let frame = match ready {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let now = Instant::now();
                let total = *waiting.get_or_insert(now + bounds.total);
                let until = total.min(now + bounds.idle);
                timeout_at(until, poll_fn(|cx| poll_body(body, cx)))
                    .await
                    .map_err(|_| Failure::request_timeout())?
            }
        };
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                // Trailers carry nothing for us.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(_)) => return Err(Failure::invalid("The request body broke off.")),
        }
    }
    Ok(None)
}

/// Whoever takes the last piece has nothing to wake the connection for.
fn poll_body(
    body: &mut Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    let (frame, was_woken) = self_wake::held(cx, |cx| Pin::new(&mut *body).poll_frame(cx));
    if was_woken && !body.is_end_stream() {
        cx.waker().wake_by_ref();
    }
    frame
}

fn too_large(bytes_max: usize) -> Failure {
    Failure::request_too_large(u64::try_from(bytes_max).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_form_data_is_a_form() {
        for (content_type, form, json) in [
            ("multipart/form-data; boundary=x", true, false),
            ("Multipart/Form-Data;boundary=x", true, false),
            (" multipart/form-data ", true, false),
            ("multipart/mixed; boundary=x", false, false),
            ("multipart/related; boundary=x", false, false),
            ("multipart/form-data-x; boundary=x", false, false),
            ("multipart/", false, false),
            ("application/json", false, true),
            ("text/plain; charset=utf-8", false, true),
            ("", false, true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            assert_eq!(is_form(&headers), form, "{content_type}");
            assert_eq!(check_json_headers(&headers).is_ok(), json, "{content_type}");
        }
        assert!(!is_form(&HeaderMap::new()));
    }
}
