//! Finds out who sent a request.

use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use store::Role;

use super::lockout::Lockout;
use super::peer::Peer;
use super::rate::RateLimit;
use super::roles::Identity;
use crate::admin::api::error::ApiError;
use crate::admin::api::state::AdminState;
use crate::config::AdminToken;

/// How many requests one token may send in a minute.
const REQUESTS_PER_MINUTE: u32 = 12_000;

/// The name of the configured token, and its id in the audit.
const CONFIGURED: &str = "config";

/// Decides who is let in.
#[derive(Debug)]
pub(crate) struct Access {
    configured: Option<AdminToken>,
    lockout: Lockout,
    rate: RateLimit,
}

impl Access {
    pub(crate) fn new(configured: Option<AdminToken>) -> Self {
        Self {
            configured,
            lockout: Lockout::default(),
            rate: RateLimit::new(REQUESTS_PER_MINUTE),
        }
    }

    /// Who sent the request. A wrong token counts against its address.
    fn identify(&self, headers: &HeaderMap, peer: Peer) -> Result<Identity, ApiError> {
        let (address, now) = (peer.network(), Instant::now());
        if let Some(left) = self.lockout.remaining(address, now) {
            return Err(ApiError::too_many(
                "Too many wrong tokens.",
                whole_seconds(left),
            ));
        }
        let token = bearer(headers).ok_or_else(ApiError::invalid_token)?;
        let configured = self.configured.as_ref();
        if !configured.is_some_and(|configured| configured.matches(token)) {
            self.lockout.note_wrong(address, now);
            return Err(ApiError::invalid_token());
        }
        let identity = Identity {
            id: CONFIGURED.to_owned(),
            name: CONFIGURED.to_owned(),
            role: Role::Owner,
        };
        self.rate.take(&identity.id, now).map_err(|left| {
            ApiError::too_many("Too many requests with this token.", whole_seconds(left))
        })?;
        Ok(identity)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    headers
        .get(AUTHORIZATION)?
        .as_bytes()
        .strip_prefix(b"Bearer ")
}

fn whole_seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

/// Lets a request pass if it needs no token, or if its sender is known.
pub(crate) async fn authenticate(
    State(state): State<AdminState>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_open(request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    let Some(peer) = request.extensions().get::<Peer>().copied() else {
        return ApiError::internal().into_response();
    };
    match state.access.identify(request.headers(), peer) {
        Ok(identity) => {
            request.extensions_mut().insert(identity);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Whether a request needs no token. Everything else does, whether it exists or not.
fn is_open(method: &Method, path: &str) -> bool {
    let reads = *method == Method::GET || *method == Method::HEAD;
    reads && matches!(path, "/healthz" | "/readyz" | "/metrics" | "/openapi.json")
}
