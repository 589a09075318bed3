//! Keeps the current token of a channel and renews it.
//!
//! Calls read the token without a lock. The engine renews it in the background before it expires; until then calls use
//! the old token. A call that finds no usable token requests one itself, and other calls wait for that request.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::token::{Token, TokenError};
use super::token_endpoint::TokenEndpoint;
use crate::address::Address;
use crate::error::{CallError, CallErrorKind, Sent, TimeoutStage};

/// The pause after the first failure. It doubles with each further failure.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause, which also applies after a refusal that only an operator can resolve.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The age below which a refused token is not replaced: an upstream that refuses a fresh token will refuse the next one
/// too.
const REFUSED_TOKEN_AGE_MIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct TokenSource {
    endpoint: TokenEndpoint,
    current: ArcSwapOption<Token>,
    /// Locked during a token request, so that one request serves all waiting calls.
    asking: Mutex<TokenFailures>,
}

/// The failures since the last successful token request.
#[derive(Debug, Default)]
struct TokenFailures {
    failures: u32,
    last: Option<(TokenError, Instant)>,
}

impl TokenSource {
    pub(super) fn new(endpoint: TokenEndpoint) -> Self {
        Self {
            endpoint,
            current: ArcSwapOption::empty(),
            asking: Mutex::default(),
        }
    }

    pub(super) fn address(&self) -> &Address {
        self.endpoint.address()
    }

    /// The current token, even if it has expired.
    pub(super) fn current(&self) -> Option<Arc<Token>> {
        self.current.load_full()
    }

    /// A token that can be used now. Requests one if there is none.
    pub(super) async fn token(&self, deadline: Instant) -> Result<Arc<Token>, CallError> {
        let now = Instant::now();
        let current = self.current.load_full();
        match current.filter(|token| now < token.expires_at) {
            Some(token) => Ok(token),
            // Boxed, because few calls need a new token.
            None => {
                Box::pin(self.ask_by(deadline, |token| Instant::now() < token.expires_at)).await
            }
        }
    }

    /// Gets another token after the upstream has refused this one; `None` if there is no other.
    pub(super) async fn token_after(
        &self,
        refused: &Arc<Token>,
        deadline: Instant,
    ) -> Option<Arc<Token>> {
        let other = |token: &Token| token.issued_at > refused.issued_at;
        let current = self.current.load_full();
        if let Some(token) = current.filter(|token| other(token)) {
            return Some(token);
        }
        if refused.issued_at.elapsed() < REFUSED_TOKEN_AGE_MIN {
            return None;
        }
        self.ask_by(deadline, other).await.ok()
    }

    /// Requests a token if the current one is due for renewal. Returns `None` if it is not, or if the last failure is
    /// too recent.
    pub(super) async fn renew(&self) -> Option<Result<(), TokenError>> {
        let is_fresh = |token: &Token| Instant::now() < token.renew_at;
        let current = self.current.load_full();
        if current.is_some_and(|token| is_fresh(&token)) {
            return None;
        }
        let mut token_failures = self.asking.lock().await;
        let current = self.current.load_full();
        let is_paused = token_failures
            .last
            .as_ref()
            .is_some_and(|(_, until)| Instant::now() < *until);
        if is_paused || current.is_some_and(|token| is_fresh(&token)) {
            return None;
        }
        Some(self.ask(&mut token_failures).await.map(drop))
    }

    /// Requests a token, or takes the one that another call has received in the meantime.
    async fn ask_by(
        &self,
        deadline: Instant,
        will_do: impl Fn(&Token) -> bool,
    ) -> Result<Arc<Token>, CallError> {
        let asked = async {
            let mut token_failures = self.asking.lock().await;
            if let Some(token) = self.current.load_full().filter(|token| will_do(token)) {
                return Ok(token);
            }
            match &token_failures.last {
                Some((error, until)) if Instant::now() < *until => Err(error.clone()),
                _ => self.ask(&mut token_failures).await,
            }
        };
        match timeout_at(deadline, asked).await {
            Ok(Ok(token)) => Ok(token),
            Ok(Err(error)) => {
                let kind = match error {
                    TokenError::Transient(_) => CallErrorKind::Connect,
                    TokenError::Final(_) => CallErrorKind::Credential,
                };
                Err(CallError::because(Sent::No, kind, error))
            }
            Err(_) => Err(CallError::new(
                Sent::No,
                CallErrorKind::Timeout(TimeoutStage::Connect),
            )),
        }
    }

    async fn ask(&self, token_failures: &mut TokenFailures) -> Result<Arc<Token>, TokenError> {
        match self.endpoint.ask().await {
            Ok(token) => {
                let token = Arc::new(token);
                self.current.store(Some(Arc::clone(&token)));
                *token_failures = TokenFailures::default();
                Ok(token)
            }
            Err(error) => {
                let doubled = PAUSE_MIN.saturating_mul(1 << token_failures.failures.min(6));
                let pause = match error {
                    TokenError::Transient(_) => doubled.min(PAUSE_MAX),
                    TokenError::Final(_) => PAUSE_MAX,
                };
                token_failures.failures = token_failures.failures.saturating_add(1);
                token_failures.last = Some((error.clone(), Instant::now() + pause));
                Err(error)
            }
        }
    }
}
