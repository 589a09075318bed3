//! Serves kept media: without a key, since nobody can guess a name, in ranges, and only until they
//! expire.

use std::net::IpAddr;
use std::ops::Range;

use engine::{AnswerBody, Engine, MediaRead, clock};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, ETAG,
    EXPIRES, HeaderName, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use ledger::UnixMs;
use protocol::{ByteQueue, Failure};
use store::{MediaError, MediaHead, MediaName};

use super::range::{Part, asked_part, names, range_holds};

/// The address by which a medium was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// `/media/{id}.mp4`: to be looked at.
    Look,
    /// `/v1beta/files/{id}:download`: to be saved.
    Save,
}

/// An answer about a medium that is there.
#[derive(Debug)]
pub(crate) enum Reply {
    Found(Box<Found>),
    /// The range lies beyond the end of a file of so many bytes.
    Outside(u64),
}

/// A medium, or a part of it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) status: StatusCode,
    pub(crate) content_type: HeaderValue,
    pub(crate) headers: HeaderMap,
    pub(crate) body: AnswerBody,
}

/// Answers GET and HEAD. Missing, expired and misspelt are the same. `from` is the caller's address,
/// if it is no proxy's.
pub(crate) async fn serve(
    engine: &Engine,
    from: Option<IpAddr>,
    name: Option<MediaName>,
    asked: Asked,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Reply, Failure> {
    let name = name.ok_or_else(no_such)?;
    let place = engine.read_media(from)?;
    let now = clock::now();
    let is_plain = method == Method::GET
        && [RANGE, IF_NONE_MATCH]
            .iter()
            .all(|it| !headers.contains_key(it));
    if is_plain {
        let found = engine.media().read(name, now).await.map_err(unavailable)?;
        let (head, body) = found.ok_or_else(no_such)?;
        let body = AnswerBody::Media(Box::new(engine.stream_of(body, place)));
        let found = Found::whole(name, asked, &head, now, body);
        return Ok(Reply::Found(found.into()));
    }
    let head = engine.media().head(name, now).await.map_err(unavailable)?;
    let head = head.ok_or_else(no_such)?;
    let text = |header: HeaderName| headers.get(header).and_then(|value| value.to_str().ok());
    if text(IF_NONE_MATCH).is_some_and(|condition| names(condition, &head.etag)) {
        let mut found = Found::whole(name, asked, &head, now, nothing());
        found.status = StatusCode::NOT_MODIFIED;
        found.headers.remove(CONTENT_LENGTH);
        return Ok(Reply::Found(found.into()));
    }
    // A range of something else than the caller has the rest of is of no use to it.
    let range = text(RANGE).filter(|_| range_holds(text(IF_RANGE), &head.etag));
    let part = asked_part(range, head.bytes);
    if method == Method::HEAD {
        let found = Found::whole(name, asked, &head, now, nothing());
        return Ok(Reply::Found(found.into()));
    }
    match part {
        Part::Outside => Ok(Reply::Outside(head.bytes)),
        Part::Whole => {
            let body = read(engine, place, name, &head, 0..head.bytes).await?;
            let found = Found::whole(name, asked, &head, now, body);
            Ok(Reply::Found(found.into()))
        }
        Part::Some(range) => {
            let body = read(engine, place, name, &head, range.clone()).await?;
            let found = Found::whole(name, asked, &head, now, body);
            let found = found.narrowed_to(&range, head.bytes);
            Ok(Reply::Found(found.into()))
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
    // It was there a moment ago: copied anew since, or swept.
    let body = found.map_err(unavailable)?.ok_or_else(no_such)?;
    Ok(AnswerBody::Media(Box::new(engine.stream_of(body, place))))
}

impl Found {
    fn whole(
        name: MediaName,
        asked: Asked,
        head: &MediaHead,
        now: UnixMs,
        body: AnswerBody,
    ) -> Self {
        let left_ms = head.expires_at.ms_since(now).max(0);
        let mut headers = HeaderMap::with_capacity(12);
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CONTENT_LENGTH, head.bytes.into());
        let disposition = match asked {
            Asked::Look => "inline",
            Asked::Save => "attachment",
        };
        for (header, text) in [
            (ETAG, Some(head.etag.clone())),
            // Whoever has the address may keep a copy as long as we do; caches between must not.
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
        let told = format!("bytes {}-{last}/{bytes}", range.start);
        if let Ok(value) = HeaderValue::try_from(told) {
            self.headers.insert(CONTENT_RANGE, value);
        }
        let length = range.end.saturating_sub(range.start);
        self.headers.insert(CONTENT_LENGTH, length.into());
        self.status = StatusCode::PARTIAL_CONTENT;
        self
    }
}

/// The error of a range beyond the end, and the header that tells the end.
pub(crate) fn outside(bytes: u64) -> (Failure, Option<HeaderValue>) {
    let failure = Failure::invalid("The range lies beyond the end of the file.").with_status(416);
    let told = HeaderValue::try_from(format!("bytes */{bytes}"));
    (failure, told.ok())
}

fn nothing() -> AnswerBody {
    AnswerBody::Whole(ByteQueue::new())
}

fn http_date(at: UnixMs) -> Option<String> {
    let at = Timestamp::from_millisecond(at.get()).ok()?;
    DateTimePrinter::new().timestamp_to_rfc9110_string(&at).ok()
}

fn no_such() -> Failure {
    Failure::not_found("There is no such file, or it has expired.")
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unavailable(error: MediaError) -> Failure {
    tracing::warn!(%error, "a medium could not be read");
    Failure::unavailable("The file cannot be read now.").retry_after(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_told_as_http_tells_them() {
        let at = UnixMs::new(784_111_777_500);
        assert_eq!(http_date(at).unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
