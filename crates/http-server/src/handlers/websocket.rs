//! Handles WebSocket sessions: checks the request, opens the session, and runs it after the upgrade.

use std::pin::pin;

use engine::{Caller, FailedCall, OpenSession, SessionCall, SessionKind};
use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use protocol::voice::AudioEncoding;
use protocol::{Failure, Family};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::context::RequestContext;
use crate::endpoint::{Endpoint, Target, WebSocketPath};
use crate::panics::catch_panic;
use crate::request::{Query, credentials, headers};

const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
const PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");
/// The subprotocol that clients of realtime sessions offer. The other subprotocols that they offer carry their key.
const REALTIME: &str = "realtime";

/// A session that is open at the upstream and waits for the client to switch protocols.
pub(crate) struct WebSocketUpgrade {
    socket: Box<OpenSession>,
    upgrade: OnUpgrade,
    pub(crate) accept: HeaderValue,
    /// The subprotocol that we chose from those offered.
    pub(crate) subprotocol: Option<HeaderValue>,
}

impl WebSocketUpgrade {
    /// Runs the session once the client has received the answer that switches protocols. The context keeps the
    /// connection registered. A panic ends only this session (S10), and dropping the session settles its hold.
    pub(crate) async fn run(self: Box<Self>, context: Box<RequestContext>) {
        let session = async {
            match self.upgrade.await {
                Ok(upgraded) => self.socket.run(TokioIo::new(upgraded)).await,
                Err(error) => tracing::debug!(%error, "a client left before its session began"),
            }
        };
        if catch_panic(pin!(session)).await.is_err() {
            context.report_panic("a session");
        }
    }
}

/// Makes every check that can refuse a session, then opens the session with the upstream.
pub(super) async fn open(
    context: &RequestContext,
    caller: &Caller,
    path: WebSocketPath,
    head: &mut Parts,
) -> Result<WebSocketUpgrade, FailedCall> {
    headers::refuse_idempotency_key(&head.headers)?;
    let accept = accept_key(head)?;
    let subprotocol = offers_realtime(&head.headers);
    let mut request = Request::new(());
    *request.extensions_mut() = std::mem::take(&mut head.extensions);
    let upgrade = hyper::upgrade::on(request);
    let query = Query::read(&head.uri)?;
    query.refuse_choices()?;
    let kind = match path {
        WebSocketPath::Realtime => {
            if query.get("call_id")?.is_some() {
                let why = "Sessions of telephone calls are not supported.";
                return Err(Failure::stateful_not_supported(why).param("call_id").into());
            }
            SessionKind::Realtime
        }
        WebSocketPath::Speech => SessionKind::Speech,
        WebSocketPath::Transcript => SessionKind::Transcript(AudioEncoding::read(
            query.get("encoding")?.as_deref(),
            query.get("sample_rate")?.as_deref(),
            query.get("multichannel")?.as_deref(),
            query.get("channels")?.as_deref(),
        )?),
    };
    let model = query.get("model")?;
    let model = model.ok_or_else(|| Failure::invalid("`model` is required.").param("model"))?;
    // A playground session has no key in its query that would have to be removed.
    let key = if context.connection.known_key.is_some() {
        None
    } else {
        let key = credentials::find(Family::OpenAi, &head.headers, &head.uri);
        Some(key.map_err(|_| Failure::invalid_api_key())?)
    };
    let call = SessionCall {
        arrival: context.arrival(caller),
        kind,
        model: model.into_owned(),
        query: query.for_upstream("model", key)?,
        memory: caller.large_bodies().share(),
    };
    let socket = context.engine().open_session(call).await?;
    Ok(WebSocketUpgrade {
        socket,
        upgrade,
        accept,
        subprotocol: subprotocol.then_some(HeaderValue::from_static(REALTIME)),
    })
}

/// Whether a request asks for a WebSocket on a path that is served, but not for sessions.
pub(super) fn is_misplaced(endpoint: &Endpoint, head: &Parts, aliases: bool) -> bool {
    head.method == Method::GET
        && !matches!(endpoint, Endpoint::WebSocket(_))
        && has_token(&head.headers, &UPGRADE, "websocket")
        && Target::is_served(head.uri.path(), aliases)
}

/// The value of `Sec-WebSocket-Accept`; an error if the request is not a WebSocket handshake.
fn accept_key(head: &Parts) -> Result<HeaderValue, Failure> {
    let headers = &head.headers;
    let is_websocket = head.method == Method::GET
        && has_token(headers, &UPGRADE, "websocket")
        && has_token(headers, &CONNECTION, "upgrade")
        && headers.get(VERSION).is_some_and(|it| it == "13")
        && head.version == Version::HTTP_11;
    let key = headers.get(KEY).filter(|_| is_websocket);
    let key = key.ok_or_else(Failure::upgrade_required)?;
    if !is_nonce(key.as_bytes()) {
        let message = "`Sec-WebSocket-Key` must be 16 bytes in base64.";
        return Err(Failure::invalid(message));
    }
    let accept = derive_accept_key(key.as_bytes());
    HeaderValue::try_from(accept).map_err(|_| Failure::internal())
}

/// Whether the key is the base64 of 16 bytes.
fn is_nonce(key: &[u8]) -> bool {
    key.strip_suffix(b"==").is_some_and(|digits| {
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        digits.len() == 22 && digits.iter().all(is_digit)
    })
}

fn offers_realtime(headers: &HeaderMap) -> bool {
    has_token(headers, &PROTOCOL, REALTIME)
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let mut tokens = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    tokens.any(|it| it.trim().eq_ignore_ascii_case(token))
}
