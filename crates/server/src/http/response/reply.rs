//! Builds responses: the head is ours alone, nothing of an upstream's stands in it.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use engine::{Aborted, Answer, AnswerBody, Arrival, CallSlot, Caller, FailedCall};
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderName, RETRY_AFTER, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use ledger::Rates;
use protocol::{ByteQueue, Code, Failure, Family};
use store::RequestId;

use crate::http::connection::http2_streams::StreamTimer;
use crate::http::connection::timers::Serving;
use crate::http::handlers::media;
use crate::http::handlers::websocket::Switch;
use crate::http::panics::catch_poll;
use crate::http::service::Connection;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The spelling that Messages clients read.
const MESSAGES_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const DROPPED_PARAMS: HeaderName = HeaderName::from_static("x-dropped-params");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const SOCKET_ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const SOCKET_PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");
const SOCKET_VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What a request needs until the last byte of its answer.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) connection: Arc<Connection>,
    pub(crate) request_id: RequestId,
    pub(crate) family: Family,
    pub(crate) endpoint: &'static str,
    pub(crate) arrived: Instant,
    /// Who asks, once that is known. Counts among the requests of its key until the answer is gone.
    pub(crate) caller: OnceLock<Caller>,
    /// A place among the node's calls, until the money is settled.
    pub(crate) place: Option<CallSlot>,
    pub(crate) _serving: Serving,
}

impl Visit {
    /// What the engine is told of the visitor.
    pub(crate) fn arrival(&self, caller: &Caller) -> Arrival {
        Arrival {
            key: caller.key,
            request_id: self.request_id,
            endpoint: self.endpoint,
            at: self.arrived,
        }
    }

    /// An answer of the engine.
    pub(crate) fn answer(self, answer: Answer) -> Response<ReplyBody> {
        let mut response = self.response(StatusCode::OK, answer.content_type, answer.body);
        write_rates(response.headers_mut(), &answer.rates);
        // The names are escaped to plain ASCII where they are written.
        if let Some(Ok(names)) = answer.dropped.map(HeaderValue::try_from) {
            response.headers_mut().insert(DROPPED_PARAMS, names);
        }
        response
    }

    /// A kept medium.
    pub(crate) fn media(self, reply: media::Reply) -> Response<ReplyBody> {
        match reply {
            media::Reply::Found(found) => {
                let mut response = self.response(found.status, found.content_type, found.body);
                response.headers_mut().extend(found.headers);
                response
            }
            media::Reply::Outside(bytes) => {
                let (failure, told) = media::outside(bytes);
                let mut response = self.failure(&failure);
                response
                    .headers_mut()
                    .extend(told.map(|told| (CONTENT_RANGE, told)));
                response
            }
        }
    }

    /// A JSON document of our own.
    pub(crate) fn json(self, document: Vec<u8>) -> Response<ReplyBody> {
        self.response(StatusCode::OK, JSON, whole(document))
    }

    /// An answer without content.
    pub(crate) fn nothing(self) -> Response<ReplyBody> {
        let mut response = self.response(StatusCode::NO_CONTENT, JSON, whole(Vec::new()));
        response.headers_mut().remove(CONTENT_TYPE);
        response
    }

    /// Notes a panic, which the panic hook has logged with its place.
    pub(crate) fn panicked(&self, what: &str) {
        self.connection.shared.engine.metrics().panics.inc();
        tracing::error!(
            request_id = &*self.request_id,
            endpoint = self.endpoint,
            "{what} panicked"
        );
    }

    /// The answer after which a connection is a session; the visit goes on with that.
    pub(crate) fn switching(&self, switch: &Switch) -> Response<ReplyBody> {
        let status = StatusCode::SWITCHING_PROTOCOLS;
        self.tell_answered(status);
        let mut response = Response::new(ReplyBody::new(whole(Vec::new()), None));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, WEBSOCKET);
        headers.insert(SOCKET_ACCEPT, switch.accept.clone());
        if let Some(subprotocol) = &switch.subprotocol {
            headers.insert(SOCKET_PROTOCOL, subprotocol.clone());
        }
        if let Ok(id) = HeaderValue::from_str(&self.request_id) {
            headers.insert(REQUEST_ID, id);
        }
        response
    }

    fn tell_answered(&self, status: StatusCode) {
        let tally = &self.connection.tally;
        tally.answered(self.endpoint, status.as_u16(), self.arrived.elapsed());
    }

    /// An error of a call, and how the key's limits stand where the ledger was asked.
    pub(crate) fn unanswered(self, unanswered: &FailedCall) -> Response<ReplyBody> {
        let mut response = self.failure(&unanswered.failure);
        if let Some(rates) = &unanswered.rates {
            write_rates(response.headers_mut(), rates);
        }
        response
    }

    /// An error in the envelope of the called endpoint.
    pub(crate) fn failure(self, failure: &Failure) -> Response<ReplyBody> {
        let document = failure.write(self.family, &self.request_id);
        let status =
            StatusCode::from_u16(failure.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = self.response(status, JSON, whole(document));
        let headers = response.headers_mut();
        // The protocol that is spoken here goes with the status (RFC 9110, 15.5.22).
        let spoken = match failure.code {
            Code::UpgradeRequired => Some(WEBSOCKET),
            Code::WebSocketNotSupported => Some(HeaderValue::from_static("HTTP/1.1")),
            _ => None,
        };
        if let Some(spoken) = spoken {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(UPGRADE, spoken);
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
        response
    }

    /// An error after which the connection is closed: where the next request begins is in doubt.
    pub(crate) fn last_failure(self, failure: &Failure) -> Response<ReplyBody> {
        let mut response = self.failure(failure);
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        response
    }

    fn response(
        self,
        status: StatusCode,
        content_type: HeaderValue,
        body: AnswerBody,
    ) -> Response<ReplyBody> {
        self.tell_answered(status);
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, content_type);
        if let Ok(id) = HeaderValue::from_str(&self.request_id) {
            if self.family == Family::Messages {
                headers.insert(MESSAGES_REQUEST_ID, id.clone());
            }
            headers.insert(REQUEST_ID, id);
        }
        let mut response = Response::new(ReplyBody::new(body, Some(self)));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let tally = &self.connection.tally;
        tally.ended(self.endpoint, self.arrived.elapsed());
    }
}

/// The answer to HEAD: the headers of the answer to GET, and nothing behind them.
pub(crate) fn without_content(response: Response<ReplyBody>) -> Response<ReplyBody> {
    let (mut head, mut reply) = response.into_parts();
    // An empty answer has no length to tell: a medium that has not changed.
    if let Some(bytes) = reply.size_hint().exact().filter(|bytes| *bytes > 0) {
        let told = head.headers.entry(CONTENT_LENGTH);
        told.or_insert_with(|| bytes.into());
    }
    reply.body = whole(Vec::new());
    Response::from_parts(head, reply)
}

fn whole(document: Vec<u8>) -> AnswerBody {
    AnswerBody::Whole(ByteQueue::from(document))
}

/// Room for the values of both rates, whatever they are.
const RATES_BYTES: usize = 128;

fn write_rates(headers: &mut HeaderMap, rates: &Rates) {
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
    // The values stand in one text, so that all headers cost one buffer.
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
        // Durations are written as the chat protocol's clients know them: `120ms`.
        write(reset, rate.reset_ms, "ms");
    }
}

/// HTTP/2 answers are handed over in pieces of this size at most: a reader is timed by the piece, and what
/// was handed over is out of our hands.
const STREAM_PIECE_BYTES: usize = 16 << 10;

/// A response body; the visit ends with it.
#[derive(Debug)]
pub(crate) struct ReplyBody {
    body: AnswerBody,
    /// What is left of a piece that was too large to be handed over at once.
    rest: Bytes,
    /// How long an HTTP/2 stream waits for its reader.
    timer: Option<Arc<StreamTimer>>,
    /// Gone where it goes on elsewhere.
    visit: Option<Visit>,
}

impl ReplyBody {
    fn new(body: AnswerBody, visit: Option<Visit>) -> Self {
        let mut reply = Self {
            body,
            rest: Bytes::new(),
            timer: StreamTimer::current(),
            visit,
        };
        reply.leave_place_if_settled();
        reply
    }

    /// The connection may carry other requests, which a panic of this one must not touch (S10).
    fn panicked(&mut self) -> Aborted {
        if let Some(visit) = &self.visit {
            visit.panicked("an answer");
        }
        // Dropped here, so that a stream closes its hold now.
        self.body = whole(Vec::new());
        Aborted
    }

    /// A call that is paid for needs its place no longer, however slowly its answer is taken.
    fn leave_place_if_settled(&mut self) {
        if let Some(visit) = &mut self.visit
            && visit.place.is_some()
            && self.body.is_settled()
        {
            visit.place = None;
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let polled = catch_poll(|| Pin::new(&mut self.body).poll_frame(cx));
        self.leave_place_if_settled();
        polled.unwrap_or_else(|_| Poll::Ready(Some(Err(self.panicked()))))
    }

    /// The next piece for a reader that is timed.
    fn poll_timed(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        if self.rest.is_empty() {
            match ready!(self.poll_body(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => self.rest = piece,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(STREAM_PIECE_BYTES));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        match &self.timer {
            Some(timer) => timer.resume(),
            None => return self.poll_body(cx),
        }
        let piece = ready!(self.poll_timed(cx));
        if let Some(timer) = &self.timer {
            timer.wait();
        }
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        if let Some(bytes) = hint.exact() {
            hint.set_exact(bytes + u64::try_from(self.rest.len()).unwrap_or(u64::MAX));
        }
        hint
    }
}
