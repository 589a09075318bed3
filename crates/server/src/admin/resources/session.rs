//! `/admin/v1/session`: sign-in to and sign-out of the console.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use protocol::Kind;
use serde::{Deserialize, Serialize};
use store::Actor;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::access::{
    Credential, Peer, SessionCookie, Viewer, expired_cookie, is_same_origin, is_secure_origin,
    new_cookie,
};
use crate::admin::api::answer::RequestId;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::Json;
use crate::admin::api::state::AdminState;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(show_session, open_session, end_session))
}

/// The authenticated actor and the node.
#[derive(Debug, Serialize, ToSchema)]
struct Session {
    name: String,
    #[schema(value_type = String, example = "operator")]
    role: &'static str,
    /// Must be sent as `x-csrf-token` with every request of the session that changes something. Null if the request was
    /// authenticated by a token.
    #[schema(required)]
    csrf: Option<String>,
    /// The name of the node that answered, if it has one.
    #[schema(required)]
    node: Option<String>,
    /// The version of the gateway.
    version: &'static str,
    /// Whether the node admits calls.
    ready: bool,
    /// The address at which callers reach the gateway.
    public_url: String,
    /// A text model that can be called now, for examples.
    #[schema(required)]
    example_model: Option<String>,
}

fn session(state: &AdminState, actor: &Actor, csrf: Option<String>) -> Session {
    let catalog = state.engine.catalog();
    let mut texts = catalog.list().filter(|model| model.kind == Kind::Text);
    Session {
        name: actor.name.clone(),
        role: actor.role.as_str(),
        csrf,
        node: state.config.server.node.clone(),
        version: env!("CARGO_PKG_VERSION"),
        ready: state.is_ready(),
        public_url: state.engine.public_url().to_owned(),
        example_model: texts.next().map(|model| model.id.to_string()),
    }
}

/// Show the authenticated actor.
#[utoipa::path(
    get,
    path = "/session",
    tag = "session",
    responses((status = 200, description = "The session, or the token's owner.", body = Session), Refused)
)]
async fn show_session(
    Viewer(actor): Viewer,
    State(state): State<AdminState>,
    cookie: Option<Extension<SessionCookie>>,
) -> Json<Session> {
    let csrf = cookie.map(|Extension(cookie)| cookie.csrf());
    Json(session(&state, &actor, csrf))
}

/// A token or a code, but not both.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignIn {
    /// An admin token.
    token: Option<String>,
    /// The code of a sign-in link, which works once.
    code: Option<String>,
}

/// Sign in. The answer sets the cookie `tollgate_admin`.
#[utoipa::path(
    post,
    path = "/session",
    tag = "session",
    request_body = SignIn,
    security(()),
    responses(
        (status = 201, description = "The session. Its cookie is HttpOnly, SameSite=Strict and lasts 12 hours.", body = Session),
        (status = 413, description = "The body is larger than 1 MiB: `request_too_large`.", body = ErrorBody),
        Refused
    )
)]
async fn open_session(
    State(state): State<AdminState>,
    Extension(peer): Extension<Peer>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    headers: HeaderMap,
    Json(sign_in): Json<SignIn>,
) -> Result<Response, ApiError> {
    if !is_same_origin(&headers) {
        return Err(ApiError::forged("Sign in from the console's own address."));
    }
    let credential = match (sign_in.token, sign_in.code) {
        (Some(token), None) => Credential::Token(token),
        (None, Some(code)) => Credential::Code(code),
        _ => return Err(ApiError::malformed("Send either `token` or `code`.")),
    };
    let store = state.store();
    let (cookie, row) = state
        .access
        .sign_in(store, credential, peer, request_id.clone())
        .await?;
    let actor = Actor {
        id: row.actor,
        name: row.name,
        role: row.role,
        request_id: Some(request_id),
    };
    let body = Json(session(&state, &actor, Some(cookie.csrf())));
    let set_cookie = new_cookie(&cookie, is_secure_origin(&headers));
    Ok((StatusCode::CREATED, [(SET_COOKIE, set_cookie)], body).into_response())
}

/// Sign out. A request that is authenticated by a token has no session to end.
#[utoipa::path(
    delete,
    path = "/session",
    tag = "session",
    responses((status = 204, description = "The session has ended."), Refused)
)]
async fn end_session(
    Viewer(actor): Viewer,
    State(state): State<AdminState>,
    cookie: Option<Extension<SessionCookie>>,
) -> Result<Response, ApiError> {
    if let Some(Extension(cookie)) = cookie {
        state.store().end_session(cookie.digest(), &actor).await?;
    }
    let answer = (StatusCode::NO_CONTENT, [(SET_COOKIE, expired_cookie())]);
    Ok(answer.into_response())
}
