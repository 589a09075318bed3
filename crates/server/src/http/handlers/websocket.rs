//! Sessions over sockets: refused in JSON, or switched.

use std::pin::pin;

use engine::{Caller, FailedCall, OpenSession, SessionCall, SessionKind};
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use protocol::voice::Listened;
use protocol::{Failure, Family};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::endpoint::surface::{Endpoint, Surface};
use crate::http::panics::catch_panic;
use crate::http::request::credentials;
use crate::http::request::query::Query;
use crate::http::response::reply::Visit;
use crate::http::service::{Shared, refuse_idempotency_key};

const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
const PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");
/// The one name that clients of realtime sessions offer besides the key.
const REALTIME: &str = "realtime";

/// The three paths that are sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketPath {
    Realtime,
    Speech,
    Transcript,
}

/// A session that only waits for its caller.
pub(crate) struct Switch {
    socket: Box<OpenSession>,
    upgrade: OnUpgrade,
    pub(crate) accept: HeaderValue,
    /// The subprotocol that was chosen of those offered.
    pub(crate) subprotocol: Option<HeaderValue>,
}

impl Switch {
    /// Runs the session when the caller has got the answer that switches. Its visit keeps
    /// the place among the connections, and its panic is its own (S10); the hold is settled by whoever drops it.
    pub(crate) async fn run(self: Box<Self>, visit: Visit) {
        let session = async {
            match self.upgrade.await {
                Ok(upgraded) => self.socket.run(TokioIo::new(upgraded)).await,
                Err(error) => tracing::debug!(%error, "a caller left before its session"),
            }
        };
        if catch_panic(pin!(session)).await.is_err() {
            visit.panicked("a session");
        }
    }
}

/// Everything that can refuse a session, then the session.
pub(crate) async fn open(
    shared: &Shared,
    visit: &Visit,
    path: SocketPath,
    caller: &Caller,
    mut request: Request<Incoming>,
) -> Result<Switch, FailedCall> {
    refuse_idempotency_key(request.headers())?;
    let accept = accepted(&request)?;
    let subprotocol = offers_realtime(request.headers());
    let upgrade = hyper::upgrade::on(&mut request);
    let query = Query::read(request.uri())?;
    query.refuse_choices()?;
    let kind = match path {
        SocketPath::Realtime => {
            if query.get("call_id")?.is_some() {
                let why = "Sessions of telephone calls are not supported.";
                return Err(Failure::stateful_not_supported(why).param("call_id").into());
            }
            SessionKind::Realtime
        }
        SocketPath::Speech => SessionKind::Speech,
        SocketPath::Transcript => SessionKind::Transcript(Listened::read(
            query.get("encoding")?.as_deref(),
            query.get("sample_rate")?.as_deref(),
            query.get("multichannel")?.as_deref(),
            query.get("channels")?.as_deref(),
        )?),
    };
    let model = query.get("model")?;
    let model = model.ok_or_else(|| Failure::invalid("`model` is required.").param("model"))?;
    let key = credentials::find(Family::OpenAi, request.headers(), request.uri());
    let key = key.map_err(|_| Failure::invalid_api_key())?;
    let call = SessionCall {
        arrival: visit.arrival(caller),
        kind,
        model: model.into_owned(),
        query: query.for_upstream("model", key)?,
    };
    let socket = shared.engine.open_session(call).await?;
    Ok(Switch {
        socket,
        upgrade,
        accept,
        subprotocol: subprotocol.then_some(HeaderValue::from_static(REALTIME)),
    })
}

/// Whether a request asks for a socket where something else is served.
pub(crate) fn is_misplaced(
    endpoint: &Endpoint,
    request: &Request<Incoming>,
    aliases: bool,
) -> bool {
    request.method() == Method::GET
        && !matches!(endpoint, Endpoint::Socket(_))
        && has_token(request.headers(), &UPGRADE, "websocket")
        && Surface::is_path(request.uri().path(), aliases)
}

/// The proof that we understood the handshake; a request that is none must upgrade.
fn accepted(request: &Request<Incoming>) -> Result<HeaderValue, Failure> {
    let headers = request.headers();
    let is_websocket = request.method() == Method::GET
        && has_token(headers, &UPGRADE, "websocket")
        && has_token(headers, &CONNECTION, "upgrade")
        && headers.get(VERSION).is_some_and(|it| it == "13")
        && request.version() == Version::HTTP_11;
    let key = headers.get(KEY).filter(|_| is_websocket);
    let key = key.ok_or_else(Failure::upgrade_required)?;
    if !is_nonce(key.as_bytes()) {
        let message = "`Sec-WebSocket-Key` must be 16 bytes in base64.";
        return Err(Failure::invalid(message));
    }
    let proof = derive_accept_key(key.as_bytes());
    HeaderValue::try_from(proof).map_err(|_| Failure::internal())
}

/// Whether it is 16 bytes in base64.
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
