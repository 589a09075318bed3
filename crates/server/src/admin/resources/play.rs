//! `/admin/v1/play`: calls of the public API in the name of a key, for the console's playground.
//!
//! A call is made by the public service itself and billed to the key. It is a row of the journal like every call, which is
//! its record; the audit lists changes, not calls.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use http::header::{
    AUTHORIZATION, CONNECTION, COOKIE, DATE, HOST, HeaderName, ORIGIN, REFERER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, HeaderValue, Uri};
use store::KeyId;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::admin::access::Operator;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::state::AdminState;
use crate::http::{InProcessError, is_callable_path};

const PLAY_KEY: HeaderName = HeaderName::from_static("x-play-key");

/// Headers that belong to the request of the operator and not to the call: who asks, from which page, and how the
/// connection works.
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

/// The paths of calls contain slashes, which a description cannot express, so it is written beside the route.
#[derive(OpenApi)]
#[openapi(paths(play, play_read, play_delete))]
struct Description;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    let methods = post(play).get(play_read).delete(play_delete);
    OpenApiRouter::with_openapi(Description::openapi()).route("/play/{*path}", methods)
}

/// Call the public API in the name of a key.
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

/// Read from the public API in the name of a key: tasks, voices, the balance.
#[utoipa::path(
    get,
    path = "/play/{path}",
    tag = "play",
    params(
        ("path" = String, Path, description = "The path of the public API, such as `v1/tasks/{id}`."),
        ("x-play-key" = String, Header, description = "The id of the key in whose name to read."),
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

/// Cancel or remove a content task in the name of a key.
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

/// Hands a request to the public service, without what belongs to the operator.
async fn forward(state: &AdminState, request: Request) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let target = target(&head.uri).ok_or_else(ApiError::unknown_path)?;
    if !is_callable_path(&head.method, target.path()) {
        return Err(ApiError::unknown_path());
    }
    let key = named_key(&head.headers)?;
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
    let mut answer = state
        .public
        .call(key, call)
        .await
        .map_err(|error| refusal(&error))?;
    for name in [CONNECTION, TRANSFER_ENCODING, DATE] {
        answer.headers_mut().remove(name);
    }
    Ok(answer.map(Body::new))
}

/// The path and query of the call: what follows `/play`.
fn target(uri: &Uri) -> Option<Uri> {
    let (_, path) = uri.path().split_once("/play/")?;
    let query = uri
        .query()
        .map_or(String::new(), |query| format!("?{query}"));
    format!("/{path}{query}").parse().ok()
}

fn named_key(headers: &HeaderMap) -> Result<KeyId, ApiError> {
    let named = headers.get(PLAY_KEY).and_then(|value| value.to_str().ok());
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
