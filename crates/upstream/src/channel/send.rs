//! Sends requests: authorises them, takes a connection from the pool or opens one, and reads the response head.

use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderValue;
use protocol::event_stream::{CONTENT_TYPE, ToSse};
use tokio::runtime::Handle;
use tokio::time::Instant as Clock;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::Channel;
use crate::credential::RequestAuth;
use crate::endpoint::Endpoint;
use crate::error::{CallError, CallErrorKind, Sent, TimeoutStage};
use crate::request::UpstreamRequest;
use crate::response::{Body, UpstreamResponse};
use crate::socket::{HANDSHAKE, Handshake, SocketRequest, SocketStream, tunnel};
use crate::wire::Connection;

impl Channel {
    /// Sends a request and returns the response as soon as its head has arrived.
    ///
    /// If an idle connection turns out to be closed before a byte of the request was written to it, another connection
    /// is used. If the upstream refuses the token of a request, the request is sent again with another token, because
    /// the upstream has not processed it. The caller must [`report`](Self::report) how the call ended.
    pub async fn send(&self, call: &UpstreamRequest) -> Result<UpstreamResponse, CallError> {
        self.0.health.attempt(Clock::now().into_std());
        self.send_unreported(call).await
    }

    /// Like [`send`](Self::send), for a call that says nothing about the health of the channel. It is not a probe, and
    /// the caller must not report how it ended.
    pub async fn send_unreported(
        &self,
        call: &UpstreamRequest,
    ) -> Result<UpstreamResponse, CallError> {
        let start = Clock::now();
        let total = start + self.0.timeouts.total;
        let preset = self.0.spec.preset;
        let hosted;
        let call = match preset.hosted_messages() {
            Some(form) if call.endpoint.is_native_messages() => {
                hosted = call.hosted_by(form);
                &hosted
            }
            _ if call.endpoint == Endpoint::Operation && preset.fetches_operations() => {
                hosted = call.fetching_operation();
                &hosted
            }
            _ => call,
        };
        let auth_deadline = (start + self.0.timeouts.connect).min(total);
        if call.spooled.is_some() && self.0.authorization.is_signature() {
            let why = "a body that is stored in a file cannot be signed";
            return Err(CallError::because(Sent::No, CallErrorKind::Unsignable, why));
        }
        let request_auth = self
            .0
            .authorization
            .for_request(&call.body, auth_deadline)
            .await?;
        // The time spent waiting for a token does not count towards the connect timeout.
        let answer = self.send_with(call, &request_auth, Clock::now(), total);
        let answer = answer.await?;
        if answer.status == 401
            && let Some(other) = self.replacement_auth(&request_auth, total).await
        {
            return Box::pin(self.send_with(call, &other, Clock::now(), total)).await;
        }
        Ok(answer)
    }

    /// Gets another authorisation after the upstream has refused one. Only tokens can be replaced.
    async fn replacement_auth(&self, refused: &RequestAuth, total: Clock) -> Option<RequestAuth> {
        let RequestAuth::Token(_) = refused else {
            return None;
        };
        let deadline = (Clock::now() + self.0.timeouts.connect).min(total);
        Box::pin(self.0.authorization.after_refusal(refused, deadline)).await
    }

    async fn send_with(
        &self,
        call: &UpstreamRequest,
        request_auth: &RequestAuth,
        start: Clock,
        total: Clock,
    ) -> Result<UpstreamResponse, CallError> {
        let runtime = Handle::current().id();
        while let Some(conn) = self.0.pool.take(runtime, start) {
            match self.exchange(conn, call, request_auth, start, total).await {
                Err(error) if error.is_stale() => {}
                result => return result,
            }
        }
        let deadline = (start + self.0.timeouts.connect).min(total);
        // Boxed, because this future is large and few calls need a new connection.
        let stream = Box::pin(self.0.connector.connect(deadline)).await?;
        let connected = Clock::now();
        let conn = Connection::new(stream, connected + self.0.timeouts.first_byte);
        let conn = Box::new(conn.counted_by(self.0.open.mark()));
        self.exchange(conn, call, request_auth, connected, total)
            .await
    }

    /// Sends a request and reads the head of the response on one connection.
    async fn exchange(
        &self,
        mut conn: Box<Connection>,
        call: &UpstreamRequest,
        request_auth: &RequestAuth,
        start: Clock,
        total: Clock,
    ) -> Result<UpstreamResponse, CallError> {
        let write = |head: &mut Vec<u8>| self.0.template.write_head(call, request_auth, head);
        conn.begin(write, &call.body, call.spooled.as_ref());
        let first_byte = start + self.0.timeouts.first_byte;
        let (deadline, stage) = if total <= first_byte {
            (total, TimeoutStage::Total)
        } else {
            (first_byte, TimeoutStage::FirstByte)
        };
        let head = conn.answer(deadline, stage).await?;
        if head.accept.is_some() {
            return Err(CallError::broken(
                "the upstream switched protocols without being asked",
            ));
        }
        let idle = self.0.timeouts.idle;
        let mut body = Body::new(conn, head.framing, idle, total);
        let mut content_type = head.content_type;
        if content_type.as_ref().is_some_and(|it| it == CONTENT_TYPE) {
            let is_converse = matches!(call.endpoint, Endpoint::Converse { .. });
            body = body.decoding_events(if is_converse {
                ToSse::from_converse()
            } else {
                ToSse::default()
            });
            content_type = Some(HeaderValue::from_static("text/event-stream"));
        }
        Ok(UpstreamResponse {
            status: head.status,
            content_type,
            retry_after: head.retry_after.map(|it| it.wait(SystemTime::now)),
            error_name: head.error_name,
            body: if head.keep_alive {
                body.returning_to(Arc::clone(&self.0.pool))
            } else {
                body
            },
        })
    }

    /// Opens a session on its own connection, or returns the response with which the upstream refuses it.
    pub async fn open_socket(&self, ask: SocketRequest<'_>) -> Result<Handshake, CallError> {
        let start = Clock::now();
        self.0.health.attempt(start.into_std());
        let auth_deadline = start + self.0.timeouts.connect;
        let request_auth = self.0.authorization.for_request(&[], auth_deadline).await?;
        let connect_by = Clock::now() + self.0.timeouts.connect;
        let stream = self.0.connector.connect(connect_by).await?;
        let deadline = Clock::now() + HANDSHAKE;
        let conn = Connection::new(stream, deadline);
        let mut conn = Box::new(conn.counted_by(self.0.open.mark()));
        let key = generate_key();
        let write = |head: &mut Vec<u8>| {
            self.0
                .template
                .write_handshake(ask, &key, &request_auth, head);
        };
        conn.begin(write, &[], None);
        let head = conn.answer(deadline, TimeoutStage::FirstByte).await?;
        match &head.accept {
            Some(accept) if *accept == derive_accept_key(key.as_bytes()) => {
                let (stream, read, open_mark) = conn.into_parts();
                let stream = SocketStream::new(stream, open_mark);
                let socket = tunnel(stream, read, ask.message_bytes_max).await;
                Ok(Handshake::Open(Box::new(socket)))
            }
            Some(_) => Err(CallError::broken(
                "sec-websocket-accept does not match the key",
            )),
            None => Ok(Handshake::Refused(UpstreamResponse {
                status: head.status,
                content_type: head.content_type,
                retry_after: head.retry_after.map(|it| it.wait(SystemTime::now)),
                error_name: head.error_name,
                body: Body::new(conn, head.framing, self.0.timeouts.idle, deadline),
            })),
        }
    }
}
