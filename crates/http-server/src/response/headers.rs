//! Writes the response headers. We set all of them: no header of an upstream's answer is copied (K5).

use bytes::BytesMut;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, RETRY_AFTER, UPGRADE};
use http::{HeaderMap, HeaderValue};
use ledger::Rates;
use protocol::{Code, Failure, Family};

use crate::context::RequestContext;
use crate::handlers::WebSocketUpgrade;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The name of the request id header in the Messages dialect.
const MESSAGES_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const DROPPED_PARAMS: HeaderName = HeaderName::from_static("x-dropped-params");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const SOCKET_ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const SOCKET_PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");
const SOCKET_VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// The headers that every answer has: content type and request id.
pub(super) fn common(context: &RequestContext, content_type: HeaderValue) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, content_type);
    if let Ok(id) = HeaderValue::from_str(&context.request_id) {
        if context.family == Family::Messages {
            headers.insert(MESSAGES_REQUEST_ID, id.clone());
        }
        headers.insert(REQUEST_ID, id);
    }
    headers
}

/// The headers of the answer that accepts a WebSocket.
pub(super) fn upgrade(context: &RequestContext, upgrade: &WebSocketUpgrade) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, WEBSOCKET);
    headers.insert(SOCKET_ACCEPT, upgrade.accept.clone());
    if let Some(subprotocol) = &upgrade.subprotocol {
        headers.insert(SOCKET_PROTOCOL, subprotocol.clone());
    }
    if let Ok(id) = HeaderValue::from_str(&context.request_id) {
        headers.insert(REQUEST_ID, id);
    }
    headers
}

/// Writes the names of dropped members. They are already escaped to ASCII.
pub(super) fn write_dropped(headers: &mut HeaderMap, dropped: Option<String>) {
    if let Some(Ok(names)) = dropped.map(HeaderValue::try_from) {
        headers.insert(DROPPED_PARAMS, names);
    }
}

/// Writes the headers of an error: whether and when to retry, and which protocol to use.
pub(super) fn write_failure(headers: &mut HeaderMap, failure: &Failure) {
    // An answer with status 426 names the protocol that the endpoint requires (RFC 9110, 15.5.22).
    let required = match failure.code {
        Code::UpgradeRequired => Some(WEBSOCKET),
        Code::WebSocketNotSupported => Some(HeaderValue::from_static("HTTP/1.1")),
        _ => None,
    };
    if let Some(required) = required {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, required);
    }
    if failure.code == Code::UpgradeRequired {
        headers.insert(SOCKET_VERSION, HeaderValue::from_static("13"));
    }
    if let Some(seconds) = failure.retry_after_s {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    if let Some(should) = failure.retry_advice() {
        headers.insert(
            SHOULD_RETRY,
            HeaderValue::from_static(if should { "true" } else { "false" }),
        );
    }
}

/// The size of a buffer that fits the values of both rate limits.
const RATES_BYTES: usize = 128;

/// Writes the rate limits of the key, what remains of them, and when they are full again (`x-ratelimit-reset-*`).
pub(super) fn write_rates(headers: &mut HeaderMap, rates: &Rates) {
    const REQUESTS: [HeaderName; 3] = [
        HeaderName::from_static("x-ratelimit-limit-requests"),
        HeaderName::from_static("x-ratelimit-remaining-requests"),
        HeaderName::from_static("x-ratelimit-reset-requests"),
    ];
    const TOKENS: [HeaderName; 3] = [
        HeaderName::from_static("x-ratelimit-limit-tokens"),
        HeaderName::from_static("x-ratelimit-remaining-tokens"),
        HeaderName::from_static("x-ratelimit-reset-tokens"),
    ];
    let kinds = [(REQUESTS, &rates.requests), (TOKENS, &rates.tokens)];
    if kinds.iter().all(|(_, rate)| rate.is_none()) {
        return;
    }
    // One buffer for the values of all headers.
    let mut text = BytesMut::with_capacity(RATES_BYTES);
    for ([limit, remaining, reset], rate) in kinds {
        let Some(rate) = rate else { continue };
        let mut write = |name, value: u64, unit: &str| {
            text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            text.extend_from_slice(unit.as_bytes());
            if let Ok(value) = HeaderValue::from_maybe_shared(text.split().freeze()) {
                headers.insert(name, value);
            }
        };
        write(limit, u64::from(rate.limit), "");
        write(remaining, u64::from(rate.remaining), "");
        // A duration in the format of the chat protocol: `120ms`.
        write(reset, rate.reset_ms, "ms");
    }
}
