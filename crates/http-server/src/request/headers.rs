//! Checks the head of a request: its size, and the headers that describe the body.

use http::{HeaderMap, HeaderName, Uri, header};
use protocol::multipart;
use protocol::{Code, Dialect, Failure};

use crate::limits::{HEADERS_MAX, Limits};

/// Enforces those limits of the head that are lower than the limits of hyper.
pub(crate) fn check_head(headers: &HeaderMap, uri: &Uri, limits: &Limits) -> Result<(), Failure> {
    let target_bytes = uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if target_bytes > limits.target_bytes_max {
        let failure = Failure::new(Code::RequestTooLarge, "The request target is too long.");
        return Err(failure.with_status(414));
    }
    // hyper counts only the headers of HTTP/1 requests.
    if headers.len() > HEADERS_MAX {
        let failure = Failure::new(Code::RequestTooLarge, "The request has too many headers.");
        return Err(failure.with_status(431));
    }
    let mut total = 0;
    for (name, value) in headers {
        let bytes = name.as_str().len() + value.len();
        total += bytes;
        if bytes > limits.header_bytes_max || total > limits.headers_bytes_max {
            let failure = Failure::new(Code::RequestTooLarge, "The request headers are too large.");
            return Err(failure.with_status(431));
        }
    }
    Ok(())
}

/// Checks the headers of a call on a JSON endpoint, so that an invalid call is refused before its body is read.
pub(crate) fn check_json_call(headers: &HeaderMap) -> Result<(), Failure> {
    refuse_idempotency_key(headers)?;
    check_json_headers(headers)
}

pub(crate) fn refuse_idempotency_key(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.contains_key("idempotency-key") {
        return Err(Failure::idempotency_key_not_supported());
    }
    Ok(())
}

/// Refuses content encodings and all `multipart` types. A body of any other content type is read as JSON.
pub(crate) fn check_json_headers(headers: &HeaderMap) -> Result<(), Failure> {
    check_not_encoded(headers)?;
    if is_multipart(headers) {
        return Err(Failure::unsupported_media_type(
            "This endpoint does not take a body of this type; send JSON.",
        ));
    }
    Ok(())
}

/// Whether the body is a form. Other `multipart` types are not forms.
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

pub(crate) fn form_reader(headers: &HeaderMap) -> Result<multipart::Reader, Failure> {
    check_not_encoded(headers)?;
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let boundary = multipart::boundary_of(content_type.unwrap_or_default())?;
    Ok(multipart::Reader::new(&boundary))
}

/// Refuses content encodings. The framing reader has refused transfer codings other than `chunked`.
fn check_not_encoded(headers: &HeaderMap) -> Result<(), Failure> {
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(Failure::unsupported_media_type(
            "Request bodies are taken without Content-Encoding.",
        ));
    }
    Ok(())
}

/// The headers that are forwarded to an upstream of the same dialect: the beta features that the client asks for.
pub(crate) fn forwarded(dialect: Dialect, headers: &HeaderMap) -> HeaderMap {
    const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
    let mut forwarded = HeaderMap::new();
    if dialect == Dialect::Messages {
        for value in headers.get_all(&BETA) {
            forwarded.append(&BETA, value.clone());
        }
    }
    forwarded
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
