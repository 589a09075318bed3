//! Serves stored media files or ranges of them until they expire. No API key is needed, because the name of a file
//! cannot be guessed (K10).

use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use engine::{AnswerBody, Engine, MediaRead, clock};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, ETAG,
    EXPIRES, HeaderName, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use ledger::UnixMs;
use protocol::{ByteQueue, Failure};
use store::{MediaError, MediaHead, MediaName};

use super::range::{Part, etag_matches, range_applies, requested_part};
use crate::endpoint::MediaPath;

/// The `retry-after` of an answer for a file that could not be read.
const READ_RETRY_AFTER: Duration = Duration::from_secs(5);

/// The answer to a request for a file that exists.
#[derive(Debug)]
pub(crate) enum MediaReply {
    File(Box<MediaFile>),
    /// The range has no byte in common with the file. The value is the size of the file.
    RangeNotSatisfiable(u64),
}

#[derive(Debug)]
pub(crate) struct MediaFile {
    pub(crate) status: StatusCode,
    pub(crate) content_type: HeaderValue,
    pub(crate) headers: HeaderMap,
    pub(crate) body: AnswerBody,
}

/// Answers GET and HEAD. Missing files, expired files and invalid names get the same 404. `address` is the client's
/// address; `None` if the peer is a trusted proxy.
pub(super) async fn serve(
    engine: &Engine,
    address: Option<IpAddr>,
    name: Option<MediaName>,
    path: MediaPath,
    request: &Parts,
) -> Result<MediaReply, Failure> {
    let (method, headers) = (&request.method, &request.headers);
    let name = name.ok_or_else(not_found)?;
    let place = engine.read_media(address)?;
    let now = clock::now();
    let is_plain = method == Method::GET
        && [RANGE, IF_NONE_MATCH]
            .iter()
            .all(|it| !headers.contains_key(it));
    if is_plain {
        let found = engine.media().read(name, now).await.map_err(unavailable)?;
        let (head, body) = found.ok_or_else(not_found)?;
        let body = AnswerBody::Media(Box::new(engine.stream_of(body, place)));
        let file = MediaFile::of_head(name, path, &head, now, body);
        return Ok(MediaReply::File(file.into()));
    }
    let head = engine.media().head(name, now).await.map_err(unavailable)?;
    let head = head.ok_or_else(not_found)?;
    let text = |header: HeaderName| headers.get(header).and_then(|value| value.to_str().ok());
    if text(IF_NONE_MATCH).is_some_and(|condition| etag_matches(condition, &head.etag)) {
        let mut file = MediaFile::of_head(name, path, &head, now, nothing());
        file.status = StatusCode::NOT_MODIFIED;
        file.headers.remove(CONTENT_LENGTH);
        return Ok(MediaReply::File(file.into()));
    }
    // If the file has changed, a range of it does not match the part that the client already has.
    let range = text(RANGE).filter(|_| range_applies(text(IF_RANGE), &head.etag));
    let part = requested_part(range, head.bytes);
    if method == Method::HEAD {
        let file = MediaFile::of_head(name, path, &head, now, nothing());
        return Ok(MediaReply::File(file.into()));
    }
    match part {
        Part::BeyondEnd => Ok(MediaReply::RangeNotSatisfiable(head.bytes)),
        Part::Whole => {
            let body = read(engine, place, name, &head, 0..head.bytes).await?;
            let file = MediaFile::of_head(name, path, &head, now, body);
            Ok(MediaReply::File(file.into()))
        }
        Part::Range(range) => {
            let body = read(engine, place, name, &head, range.clone()).await?;
            let file = MediaFile::of_head(name, path, &head, now, body);
            let file = file.narrowed_to(&range, head.bytes);
            Ok(MediaReply::File(file.into()))
        }
    }
}

async fn read(
    engine: &Engine,
    place: MediaRead,
    name: MediaName,
    head: &MediaHead,
    range: Range<u64>,
) -> Result<AnswerBody, Failure> {
    let found = engine.media().read_range(name, head, range).await;
    // `None` means that the file has been replaced or swept since its head was read.
    let body = found.map_err(unavailable)?.ok_or_else(not_found)?;
    Ok(AnswerBody::Media(Box::new(engine.stream_of(body, place))))
}

impl MediaFile {
    fn of_head(
        name: MediaName,
        path: MediaPath,
        head: &MediaHead,
        now: UnixMs,
        body: AnswerBody,
    ) -> Self {
        let left_ms = head.expires_at.ms_since(now).max(0);
        let mut headers = HeaderMap::with_capacity(12);
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CONTENT_LENGTH, head.bytes.into());
        let disposition = match path {
            MediaPath::Inline => "inline",
            MediaPath::Download => "attachment",
        };
        for (header, text) in [
            (ETAG, Some(head.etag.clone())),
            // The client may cache the file until it expires; shared caches must not.
            (
                CACHE_CONTROL,
                Some(format!("private, max-age={}", left_ms / 1000)),
            ),
            (
                CONTENT_DISPOSITION,
                Some(format!("{disposition}; filename=\"{name}\"")),
            ),
            (LAST_MODIFIED, http_date(head.kept_at)),
            (EXPIRES, http_date(head.expires_at)),
        ] {
            if let Some(Ok(value)) = text.map(HeaderValue::try_from) {
                headers.insert(header, value);
            }
        }
        Self {
            status: StatusCode::OK,
            content_type: HeaderValue::from_static(name.kind.mime()),
            headers,
            body,
        }
    }

    fn narrowed_to(mut self, range: &Range<u64>, bytes: u64) -> Self {
        let last = range.end.saturating_sub(1);
        let content_range = format!("bytes {}-{last}/{bytes}", range.start);
        if let Ok(value) = HeaderValue::try_from(content_range) {
            self.headers.insert(CONTENT_RANGE, value);
        }
        let length = range.end.saturating_sub(range.start);
        self.headers.insert(CONTENT_LENGTH, length.into());
        self.status = StatusCode::PARTIAL_CONTENT;
        self
    }
}

fn nothing() -> AnswerBody {
    AnswerBody::Whole(ByteQueue::new())
}

fn http_date(at: UnixMs) -> Option<String> {
    let at = Timestamp::from_millisecond(at.get()).ok()?;
    DateTimePrinter::new().timestamp_to_rfc9110_string(&at).ok()
}

fn not_found() -> Failure {
    Failure::not_found("There is no such file, or it has expired.")
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unavailable(error: MediaError) -> Failure {
    tracing::warn!(%error, "a media file could not be read");
    Failure::unavailable("The file cannot be read now.").retry_after(READ_RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_in_the_format_of_http() {
        let at = UnixMs::new(784_111_777_500);
        assert_eq!(http_date(at).unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
