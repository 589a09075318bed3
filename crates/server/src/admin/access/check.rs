//! Authenticates requests, by their token or the cookie of their session.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use store::{Actor, Digest, NewSession, OpenedBy, Role, SessionRow, Store, TokenId};
use subtle::ConstantTimeEq as _;

use super::cookie::SessionCookie;
use super::lockout::Lockout;
use super::peer::Peer;
use super::rate::RateLimit;
use super::roles::Identity;
use crate::admin::api::error::ApiError;
use crate::admin::api::state::AdminState;
use crate::config::AdminToken;

/// The maximum number of requests per actor and minute. A token and the sessions that it opened are one actor.
const REQUESTS_PER_MINUTE: u32 = 12_000;

pub(super) const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 3600);

/// The minimum time between two writes of a token's last use.
const USE_NOTED_EVERY: Duration = Duration::from_secs(60);

/// The maximum length of a token. The tokens that we create are shorter, but a configured one may be long.
const TOKEN_BYTES_MAX: usize = 4096;

/// The name of the configured token, and its id in the audit.
const CONFIGURED: &str = "config";

#[derive(Debug)]
pub(crate) struct Access {
    configured: Option<Digest>,
    lockout: Lockout,
    rate: RateLimit,
    /// When the use of each token was last written to the store.
    noted: Mutex<HashMap<TokenId, Instant>>,
}

pub(crate) enum Credential {
    Token(String),
    Code(String),
}

impl Access {
    pub(crate) fn new(configured: Option<&AdminToken>) -> Self {
        Self {
            configured: configured.map(AdminToken::digest),
            lockout: Lockout::default(),
            rate: RateLimit::new(REQUESTS_PER_MINUTE),
            noted: Mutex::default(),
        }
    }

    /// Identifies the sender of a request. A wrong token or cookie counts against the sender's address. Also returns
    /// the cookie, if it authenticated the request.
    async fn identify(
        &self,
        store: &Store,
        method: &Method,
        headers: &HeaderMap,
        peer: Peer,
    ) -> Result<(Identity, Option<SessionCookie>), ApiError> {
        let (identity, cookie) = if let Some(token) = bearer(headers) {
            self.check_lockout(peer)?;
            (self.by_token(store, token).await?, None)
        } else if let Some(cookie) = SessionCookie::of(headers) {
            // Sessions stay valid while their address is locked out: one program with an old token must not lock out
            // people behind the same proxy. A cookie without a session is refused like a wrong token.
            let identity = self.by_session(store, &cookie).await?;
            if identity.is_some() {
                cookie.check_request(method, headers)?;
            } else {
                self.check_lockout(peer)?;
            }
            (identity, Some(cookie))
        } else {
            self.check_lockout(peer)?;
            return Err(ApiError::invalid_token());
        };
        let Some(identity) = identity else {
            let (network, now) = (peer.network(), Instant::now());
            match cookie {
                Some(cookie) => self
                    .lockout
                    .note_wrong_cookie(network, cookie.digest(), now),
                None => self.lockout.note_wrong(network, now),
            }
            return Err(ApiError::invalid_token());
        };
        self.check_rate(&identity)?;
        Ok((identity, cookie))
    }

    fn check_rate(&self, identity: &Identity) -> Result<(), ApiError> {
        let taken = self.rate.take(&identity.id, Instant::now());
        taken.map_err(|left| ApiError::too_many("Too many requests with this token.", left))
    }

    fn check_lockout(&self, peer: Peer) -> Result<(), ApiError> {
        match self.lockout.remaining(peer.network(), Instant::now()) {
            Some(left) => Err(ApiError::too_many(
                "Too many wrong tokens from this address.",
                left,
            )),
            None => Ok(()),
        }
    }

    async fn by_token(&self, store: &Store, token: &[u8]) -> Result<Option<Identity>, ApiError> {
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let digest = Digest::of(token);
        if self.is_configured(&digest) {
            return Ok(Some(Identity {
                id: CONFIGURED.to_owned(),
                name: CONFIGURED.to_owned(),
                role: Role::Owner,
            }));
        }
        let Some(row) = store.token_by_digest(&digest).await? else {
            return Ok(None);
        };
        self.note_used(store, row.id);
        Ok(Some(Identity {
            id: row.id.to_string(),
            name: row.name,
            role: row.role,
        }))
    }

    async fn by_session(
        &self,
        store: &Store,
        cookie: &SessionCookie,
    ) -> Result<Option<Identity>, ApiError> {
        let Some(row) = store.session(&cookie.digest()).await? else {
            return Ok(None);
        };
        // The store checks its own tokens for revocation. A session opened with the configured token is checked here.
        let is_stale =
            row.actor == CONFIGURED && !row.token.is_some_and(|token| self.is_configured(&token));
        Ok((!is_stale).then_some(Identity {
            id: row.actor,
            name: row.name,
            role: row.role,
        }))
    }

    /// Compares digests in constant time.
    fn is_configured(&self, digest: &Digest) -> bool {
        let configured = self.configured.as_ref();
        configured.is_some_and(|it| it.as_bytes().ct_eq(digest.as_bytes()).into())
    }

    /// Records that a token is in use, at most once a minute, without waiting for the write.
    fn note_used(&self, store: &Store, token: TokenId) {
        let now = Instant::now();
        {
            let mut noted = self.noted.lock();
            if noted
                .get(&token)
                .is_some_and(|last| now.duration_since(*last) < USE_NOTED_EVERY)
            {
                return;
            }
            noted.insert(token, now);
        }
        let store = store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.note_token_used(token).await {
                tracing::warn!(%error, %token, "the use of a token could not be stored");
            }
        });
    }

    /// Opens a session. A wrong token or code counts against the sender's address.
    pub(crate) async fn sign_in(
        &self,
        store: &Store,
        credential: Credential,
        peer: Peer,
        request_id: String,
    ) -> Result<(SessionCookie, SessionRow), ApiError> {
        self.check_lockout(peer)?;
        let cookie = SessionCookie::fresh();
        let opened = match credential {
            Credential::Token(token) => match self.by_token(store, token.as_bytes()).await? {
                Some(identity) => {
                    self.check_rate(&identity)?;
                    let actor = Actor {
                        id: identity.id.clone(),
                        name: identity.name.clone(),
                        role: identity.role,
                        request_id: Some(request_id),
                    };
                    let opened_by = OpenedBy::Token {
                        digest: Digest::of(token.as_bytes()),
                        actor: identity.id,
                        name: identity.name,
                        role: identity.role,
                    };
                    open(store, &cookie, opened_by, &actor).await?
                }
                None => None,
            },
            Credential::Code(code) => {
                // The actor is not known here: the store finds it by the code.
                let nobody = Actor {
                    request_id: Some(request_id),
                    ..Actor::cli("")
                };
                let opened_by = OpenedBy::Code(Digest::of(code.as_bytes()));
                open(store, &cookie, opened_by, &nobody).await?
            }
        };
        let Some(row) = opened else {
            self.lockout.note_wrong(peer.network(), Instant::now());
            return Err(ApiError::invalid_token());
        };
        Ok((cookie, row))
    }
}

async fn open(
    store: &Store,
    cookie: &SessionCookie,
    opened_by: OpenedBy,
    actor: &Actor,
) -> Result<Option<SessionRow>, ApiError> {
    let new = NewSession {
        digest: cookie.digest(),
        lifetime: SESSION_LIFETIME,
        opened_by,
    };
    Ok(store.open_session(new, actor).await?)
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

/// Lets a request pass if it needs no token, or if it is authenticated.
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
    let identified =
        state
            .access
            .identify(state.store(), request.method(), request.headers(), peer);
    match identified.await {
        Ok((identity, cookie)) => {
            request.extensions_mut().insert(identity);
            if let Some(cookie) = cookie {
                request.extensions_mut().insert(cookie);
            }
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Whether a request needs no token. Every other path needs one, even if it does not exist. The files of the console
/// are served before this check.
fn is_open(method: &Method, path: &str) -> bool {
    match path {
        "/healthz" | "/readyz" | "/metrics" | "/openapi.json" => {
            *method == Method::GET || *method == Method::HEAD
        }
        // Sign-in, which exchanges a token or a code for a session.
        "/admin/v1/session" => *method == Method::POST,
        _ => false,
    }
}
