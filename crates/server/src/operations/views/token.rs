//! The view of a token of the admin API.

use ledger::UnixMs;
use serde::Serialize;
use store::{TokenId, TokenRow};
use utoipa::ToSchema;

/// A token. Its secret is shown once, when it is created.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Token)]
pub(crate) struct TokenView {
    #[schema(value_type = String, example = "tok_0123456789abcdef")]
    pub(crate) id: TokenId,
    pub(crate) name: String,
    #[schema(value_type = String, example = "operator")]
    pub(crate) role: &'static str,
    /// The first characters of the secret.
    pub(crate) prefix: String,
    pub(crate) created_at: i64,
    /// When the token was last used, to the minute; null if it was never used.
    #[schema(required)]
    pub(crate) last_used_at: Option<i64>,
    /// Null while the token is valid.
    #[schema(required)]
    pub(crate) revoked_at: Option<i64>,
}

impl From<TokenRow> for TokenView {
    fn from(row: TokenRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            role: row.role.as_str(),
            prefix: row.shown_prefix,
            created_at: row.created_at.get(),
            last_used_at: row.last_used_at.map(UnixMs::get),
            revoked_at: row.revoked_at.map(UnixMs::get),
        }
    }
}

/// A new token with its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NewToken)]
pub(crate) struct NewTokenView {
    #[serde(flatten)]
    pub(crate) token: TokenView,
    /// The secret, which is never shown again.
    pub(crate) secret: String,
}
