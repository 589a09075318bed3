//! Tokens, sign-in codes and sessions of the admin API. The store sees digests, never secrets.

use std::time::Duration;

use ledger::UnixMs;

use super::audit::Role;
use super::ids::{Digest, TokenId};

/// A new token.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// A name for people, shown in the audit.
    pub name: String,
    pub role: Role,
    pub digest: Digest,
    /// The first characters of the secret, so that people can tell tokens apart.
    pub shown_prefix: String,
}

/// The current state of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Its position among the tokens, oldest first.
    pub cursor: TokenCursor,
    pub id: TokenId,
    pub name: String,
    pub role: Role,
    pub shown_prefix: String,
    pub created_at: UnixMs,
    /// Accurate to the minute.
    pub last_used_at: Option<UnixMs>,
    pub revoked_at: Option<UnixMs>,
}

/// A position among the tokens, for paging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenCursor(pub i64);

/// A query for tokens, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenQuery {
    /// Tokens after this position: the next page.
    pub after: Option<TokenCursor>,
    /// 0 means the maximum of 1,000.
    pub limit: u32,
}

/// The maximum number of tokens per page.
pub const TOKENS_MAX: u32 = 1_000;

impl TokenQuery {
    pub(crate) fn rows_max(self) -> u32 {
        match self.limit {
            0 => TOKENS_MAX,
            limit => limit.min(TOKENS_MAX),
        }
    }
}

/// A new one-time sign-in code.
#[derive(Debug, Clone)]
pub struct NewSignInCode {
    pub digest: Digest,
    pub name: String,
    pub role: Role,
    pub lifetime: Duration,
}

/// A new browser session.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub digest: Digest,
    pub lifetime: Duration,
    pub opened_by: OpenedBy,
}

/// The credential that opens a session.
#[derive(Debug, Clone)]
pub enum OpenedBy {
    /// A token, from the store or from the configuration. The session ends when the token does.
    Token {
        digest: Digest,
        actor: String,
        name: String,
        role: Role,
    },
    /// A sign-in code, which opening the session uses up.
    Code(Digest),
}

/// A session that has not expired. If it was opened with a stored token, that token is not revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The token that opened the session. `None` if a sign-in code opened it.
    pub token: Option<Digest>,
    /// The id of the actor in the audit.
    pub actor: String,
    pub name: String,
    pub role: Role,
    pub expires_at: UnixMs,
}

/// The actor id of sessions that were opened with a sign-in code.
pub(crate) const SIGN_IN_CODE_ACTOR: &str = "link";

pub(crate) fn end_of(now: UnixMs, lifetime: Duration) -> UnixMs {
    now.plus_ms(i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX))
}
