//! `/admin/v1/play`: calls of the public API on behalf of a key, for the console's playground.
//!
//! The public service itself serves the call and bills it to the key. The call is recorded in the journal like any
//! other; the audit lists only changes.
//!
//! A session is a WebSocket: the handshake goes to the public service like a call, and then bytes are copied in both
//! directions. Browsers cannot set the headers of a WebSocket, so the query may name the key, and the subprotocols
//! carry the CSRF token of the session (`access/cookie.rs`).

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use http::header::{
    AUTHORIZATION, CONNECTION, COOKIE, DATE, HOST, HeaderName, ORIGIN, REFERER,
    SEC_WEBSOCKET_PROTOCOL, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_server::{InProcessError, is_callable_path};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use store::KeyId;
use tokio::io::AsyncWriteExt as _;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::admin::access::Operator;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::state::AdminState;

const PLAY_KEY: HeaderName = HeaderName::from_static("x-play-key");
/// The query parameter that names the key of a WebSocket.
const PLAY_KEY_QUERY: &str = "play_key";

/// Headers of the operator's request that are not part of the call: authentication, the page's origin, and connection
/// headers.
const OWN_HEADERS: [HeaderName; 12] = [
    AUTHORIZATION,
    COOKIE,
    HOST,
    ORIGIN,
    REFERER,
    CONNECTION,
    UPGRADE,
    TRANSFER_ENCODING,
    PLAY_KEY,
    HeaderName::from_static("x-csrf-token"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// The paths of calls contain slashes, which the router's description cannot express, so their description is written
/// separately.
#[derive(OpenApi)]
#[openapi(paths(play, play_read, play_delete))]
struct Description;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    let methods = post(play).get(play_read).delete(play_delete);
    OpenApiRouter::with_openapi(Description::openapi()).route("/play/{*path}", methods)
}

/// Call the public API on behalf of a key.
///
/// Path, query, headers and body are those of the public API. The answer has the status, headers and body that the public
/// listener would send, streams included. The call is billed to the key.
#[utoipa::path(
    post,
    path = "/play/{path}",
    tag = "play",
    params(
        ("path" = String, Path, description = "The path of the public API, such as `v1/chat/completions`."),
        ("x-play-key" = String, Header, description = "The id of the key that the call is billed to."),
    ),
    responses(
        (status = "default", description = "What the public listener answers."),
        (status = 404, description = "No such key, or no such path of the public API.", body = ErrorBody),
        Refused,
    )
)]
async fn play(
    _operator: Operator,
    State(state): State<AdminState>,
    request: Request,
) -> Result<Response, ApiError> {
    forward(&state, request).await
}

/// Read from the public API on behalf of a key: tasks, voices, the balance. Or open a session.
///
/// A WebSocket handshake opens a session of the public API, such as `v1/realtime?model=...`. A page of a signed-in
/// browser offers the subprotocols `realtime` and `csrf.<token>`, and names the key as `play_key` in the query.
#[utoipa::path(
    get,
    path = "/play/{path}",
    tag = "play",
    params(
        ("path" = String, Path, description = "The path of the public API, such as `v1/tasks/{id}`."),
        ("x-play-key" = Option<String>, Header, description = "The id of the key in whose name to read."),
        ("play_key" = Option<String>, Query, description = "The id of the key, where headers cannot be set: for a WebSocket only."),
    ),
    responses(
        (status = "default", description = "What the public listener answers."),
        (status = 404, description = "No such key, or no such path of the public API.", body = ErrorBody),
        Refused,
    )
)]
async fn play_read(
    _operator: Operator,
    State(state): State<AdminState>,
    request: Request,
) -> Result<Response, ApiError> {
    forward(&state, request).await
}

/// Cancel or remove a content task on behalf of a key.
#[utoipa::path(
    delete,
    path = "/play/{path}",
    tag = "play",
    params(
        ("path" = String, Path, description = "The path of the task in the public API."),
        ("x-play-key" = String, Header, description = "The id of a key of the wallet that owns the task."),
    ),
    responses(
        (status = "default", description = "What the public listener answers."),
        (status = 404, description = "No such key, or no such path of the public API.", body = ErrorBody),
        Refused,
    )
)]
async fn play_delete(
    _operator: Operator,
    State(state): State<AdminState>,
    request: Request,
) -> Result<Response, ApiError> {
    forward(&state, request).await
}

/// Forwards a request to the public service, without the parts that belong to the operator's request.
async fn forward(state: &AdminState, request: Request) -> Result<Response, ApiError> {
    let (mut head, body) = request.into_parts();
    let target = target(&head.uri).ok_or_else(ApiError::unknown_path)?;
    if !is_callable_path(&head.method, target.path()) {
        return Err(ApiError::unknown_path());
    }
    let near = is_socket(&head.headers).then(|| head.extensions.remove::<OnUpgrade>());
    let near = near.flatten();
    let key = named_key(&head.headers, near.is_some().then_some(&head.uri))?;
    if state.store().find_key(&key).await?.is_none() {
        return Err(ApiError::not_found("key", key));
    }
    let mut call = http::Request::new(body);
    *call.method_mut() = head.method;
    *call.uri_mut() = target;
    *call.headers_mut() = head.headers;
    for name in &OWN_HEADERS {
        call.headers_mut().remove(name);
    }
    call.headers_mut()
        .insert(HOST, HeaderValue::from_static("playground"));
    if near.is_some() {
        write_handshake(call.headers_mut());
    }
    let mut answer = state
        .public
        .call(key, call)
        .await
        .map_err(|error| refusal(&error))?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(near) = near
    {
        let far = hyper::upgrade::on(&mut answer);
        // The in-process connection adds `connection: close`, which some clients take for a refused upgrade.
        let upgrade = HeaderValue::from_static("upgrade");
        answer.headers_mut().insert(CONNECTION, upgrade);
        state.public.spawn(join(near, far));
        return Ok(answer.map(Body::new));
    }
    for name in [CONNECTION, TRANSFER_ENCODING, DATE] {
        answer.headers_mut().remove(name);
    }
    Ok(answer.map(Body::new))
}

/// Whether a request asks for an upgrade to WebSocket.
fn is_socket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    upgrade.is_some_and(|it| it.eq_ignore_ascii_case(b"websocket"))
}

/// Prepares the handshake of the call. Only the subprotocol of sessions is forwarded; the others belong to the
/// operator's request.
fn write_handshake(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if headers.remove(SEC_WEBSOCKET_PROTOCOL).is_some() {
        let session = HeaderValue::from_static("realtime");
        headers.insert(SEC_WEBSOCKET_PROTOCOL, session);
    }
}

/// Copies bytes between the browser and the public service until one of them closes.
async fn join(near: OnUpgrade, far: OnUpgrade) {
    let (near, far) = match tokio::try_join!(near, far) {
        Ok(both) => both,
        Err(error) => {
            tracing::debug!(%error, "a session of the playground did not begin");
            return;
        }
    };
    let (mut near_read, mut near_write) = tokio::io::split(TokioIo::new(near));
    let (mut far_read, mut far_write) = tokio::io::split(TokioIo::new(far));
    // The session enforces its own limits. When one socket closes, nothing is left to send on the other.
    tokio::select! {
        _ = tokio::io::copy(&mut near_read, &mut far_write) => {
            let _ = far_write.shutdown().await;
        }
        _ = tokio::io::copy(&mut far_read, &mut near_write) => {
            let _ = near_write.shutdown().await;
        }
    }
}

/// The path and query of the call: the part after `/play`, without the parameter that names the key.
fn target(uri: &Uri) -> Option<Uri> {
    let (_, path) = uri.path().split_once("/play/")?;
    let is_own = |pair: &&str| {
        pair.split_once('=')
            .is_some_and(|(name, _)| name == PLAY_KEY_QUERY)
    };
    let pairs = uri.query().unwrap_or_default().split('&');
    let query = pairs.filter(|pair| !is_own(pair)).collect::<Vec<_>>();
    match query.join("&") {
        query if query.is_empty() => format!("/{path}").parse().ok(),
        query => format!("/{path}?{query}").parse().ok(),
    }
}

/// The id of the key: from the header, or from the query of a WebSocket handshake.
fn named_key(headers: &HeaderMap, socket: Option<&Uri>) -> Result<KeyId, ApiError> {
    let named = headers.get(PLAY_KEY).and_then(|value| value.to_str().ok());
    let named = named.or_else(|| {
        let mut pairs = socket?.query()?.split('&');
        pairs.find_map(|pair| pair.strip_prefix(PLAY_KEY_QUERY)?.strip_prefix('='))
    });
    // The value is not repeated in the message: it may be a secret.
    named.and_then(|named| named.parse().ok()).ok_or_else(|| {
        let message =
            "The header `x-play-key` must be the id of the key that the call is billed to.";
        ApiError::invalid(PLAY_KEY.as_str(), message)
    })
}

fn refusal(error: &InProcessError) -> ApiError {
    tracing::warn!(%error, "a call of the playground was not served");
    match error {
        InProcessError::Busy => ApiError::unavailable(),
        InProcessError::Broken(_) => ApiError::internal(),
    }
}
