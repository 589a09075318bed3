//! Completes every answer of the admin listener: adds a request id, and headers that keep browsers from sniffing its
//! type, framing it or caching it. An error also gets its envelope.

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::error::{ApiError, ErrorBody, ErrorDetail};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The id of a request, which is shown in the answer and in the audit.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

pub(crate) async fn complete(mut request: Request, next: Next) -> Response {
    let id: String = engine::ids::fresh::<Box<str>>("req_").into();
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        write_error(&mut response, error, &id);
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        // A playground call already has a request id, that of its journal row.
        headers.entry(REQUEST_ID).or_insert(id);
    }
    write_policies(headers);
    response
}

/// Writes the envelope of an error. Headers that were set before, such as `allow`, stay.
fn write_error(response: &mut Response, error: ApiError, request_id: &str) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.remove(CONTENT_LENGTH);
    if let Some(seconds) = error.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if error.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    let body = ErrorBody {
        error: ErrorDetail {
            code: error.code,
            message: error.message,
            param: error.param,
            request_id: request_id.to_owned(),
        },
    };
    *response.status_mut() = error.status;
    *response.body_mut() = Body::from(serde_json::to_vec(&body).unwrap_or_default());
}

/// Sets browser policies. Pages that need other policies, such as the console, have already set their own.
fn write_policies(headers: &mut HeaderMap) {
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (REFERRER_POLICY, "no-referrer"),
        (RESOURCE_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}
