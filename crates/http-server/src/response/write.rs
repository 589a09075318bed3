//! Builds the response for each kind of result, with the headers of `headers.rs`.

use bytes::Bytes;
use engine::{Answer, AnswerBody, FailedCall};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body::Body as _;
use protocol::{ByteQueue, Failure};

use super::body::{ResponseBody, buffered};
use super::cors::Grant;
use super::headers::{self, JSON};
use crate::context::RequestContext;
use crate::handlers::{MediaReply, WebSocketUpgrade};

pub(crate) fn answer(context: Box<RequestContext>, answer: Answer) -> Response<ResponseBody> {
    let mut response = build(context, StatusCode::OK, answer.content_type, answer.body);
    headers::write_rates(response.headers_mut(), &answer.rates);
    headers::write_dropped(response.headers_mut(), answer.dropped);
    response
}

/// A media file, or an error about its range.
pub(crate) fn media(context: Box<RequestContext>, reply: MediaReply) -> Response<ResponseBody> {
    match reply {
        MediaReply::File(file) => {
            let mut response = build(context, file.status, file.content_type, file.body);
            response.headers_mut().extend(file.headers);
            response
        }
        MediaReply::RangeNotSatisfiable(bytes) => {
            let message = "The range lies beyond the end of the file.";
            let mut response = failure(context, &Failure::invalid(message).with_status(416));
            if let Ok(size) = HeaderValue::try_from(format!("bytes */{bytes}")) {
                response.headers_mut().insert(CONTENT_RANGE, size);
            }
            response
        }
    }
}

/// A file for browsers, with its own headers.
pub(crate) fn file(context: Box<RequestContext>, file: Response<Bytes>) -> Response<ResponseBody> {
    let (head, bytes) = file.into_parts();
    let mut body = ByteQueue::new();
    body.push(bytes);
    let mut response = build(context, head.status, JSON, AnswerBody::Whole(body));
    // A 304 has no content type.
    response.headers_mut().remove(CONTENT_TYPE);
    response.headers_mut().extend(head.headers);
    response
}

/// A JSON document that we wrote.
pub(crate) fn json(context: Box<RequestContext>, document: Vec<u8>) -> Response<ResponseBody> {
    build(context, StatusCode::OK, JSON, buffered(document))
}

pub(crate) fn no_content(context: Box<RequestContext>) -> Response<ResponseBody> {
    let mut response = build(context, StatusCode::NO_CONTENT, JSON, buffered(Vec::new()));
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// The answer that switches a connection to a WebSocket session. The session keeps the context.
pub(crate) fn switching_protocols(
    context: &RequestContext,
    upgrade: &WebSocketUpgrade,
) -> Response<ResponseBody> {
    let status = StatusCode::SWITCHING_PROTOCOLS;
    context.count_answered(status);
    let mut response = Response::new(ResponseBody::new(buffered(Vec::new()), None));
    *response.status_mut() = status;
    *response.headers_mut() = headers::upgrade(context, upgrade);
    response
}

/// An error of a call. It has the rate limits of the key if the call reached the ledger.
pub(crate) fn failed_call(
    context: Box<RequestContext>,
    failed: &FailedCall,
) -> Response<ResponseBody> {
    let mut response = failure(context, &failed.failure);
    if let Some(rates) = &failed.rates {
        headers::write_rates(response.headers_mut(), rates);
    }
    response
}

/// An error in the envelope of the called endpoint.
pub(crate) fn failure(context: Box<RequestContext>, failure: &Failure) -> Response<ResponseBody> {
    let document = failure.write(context.family, &context.request_id);
    let status =
        StatusCode::from_u16(failure.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = build(context, status, JSON, buffered(document));
    headers::write_failure(response.headers_mut(), failure);
    response
}

/// An error after which the connection is closed, because it is unclear where the next request begins.
pub(crate) fn failure_and_close(
    context: Box<RequestContext>,
    failure: &Failure,
) -> Response<ResponseBody> {
    let mut response = self::failure(context, failure);
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Adds the CORS headers, and removes the content from an answer to HEAD.
pub(crate) fn finish(
    mut response: Response<ResponseBody>,
    grant: Option<Grant>,
    is_head: bool,
) -> Response<ResponseBody> {
    if let Some(grant) = grant
        && response.status() != StatusCode::SWITCHING_PROTOCOLS
    {
        grant.write(response.headers_mut());
    }
    if is_head {
        remove_content(&mut response);
    }
    response
}

/// Keeps the headers of the answer to GET and drops its content.
fn remove_content(response: &mut Response<ResponseBody>) {
    let bytes = response.body().size_hint().exact();
    // An empty answer, such as that for an unchanged media file, gets no `content-length`.
    if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
        let length = response.headers_mut().entry(CONTENT_LENGTH);
        length.or_insert_with(|| bytes.into());
    }
    response.body_mut().clear();
}

fn build(
    context: Box<RequestContext>,
    status: StatusCode,
    content_type: HeaderValue,
    body: AnswerBody,
) -> Response<ResponseBody> {
    context.count_answered(status);
    let headers = headers::common(&context, content_type);
    let mut response = Response::new(ResponseBody::new(body, Some(context)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
