//! Checks changes of tokens, sign-in codes and sessions, and composes their audit rows.

use serde_json::json;

use super::audit::NewAuditRow;
use super::changes::checked_name;
use crate::error::StoreError;
use crate::records::access::{NewSignInCode, NewToken, SessionRow, TokenRow};
use crate::records::ids::TokenId;

pub(crate) fn checked_token(new: &NewToken) -> Result<(), StoreError> {
    checked_name("token", &new.name)
}

pub(crate) fn checked_code(new: &NewSignInCode) -> Result<(), StoreError> {
    checked_name("sign-in code", &new.name)
}

pub(crate) fn no_token(id: TokenId) -> StoreError {
    StoreError::NotFound {
        what: "token",
        id: id.to_string(),
    }
}

impl NewAuditRow {
    pub(crate) fn token_created(row: &TokenRow) -> Self {
        let after = json!({
            "name": row.name,
            "role": row.role.as_str(),
            "prefix": row.shown_prefix,
        });
        Self::created("token.create", row.id.to_string(), &after)
    }

    pub(crate) fn token_revoked(row: &TokenRow) -> Self {
        Self::changed(
            "token.revoke",
            row.id.to_string(),
            json!({ "revoked": false }),
            json!({ "revoked": true, "name": row.name }),
        )
    }

    pub(crate) fn code_created(new: &NewSignInCode, expires_at: i64) -> Self {
        let after = json!({
            "name": new.name,
            "role": new.role.as_str(),
            "expires_at": expires_at,
        });
        Self::created("sign_in_link.create", "link".to_owned(), &after)
    }

    pub(crate) fn session_opened(row: &SessionRow) -> Self {
        let after = json!({
            "name": row.name,
            "role": row.role.as_str(),
            "expires_at": row.expires_at.get(),
        });
        Self::created("session.create", row.actor.clone(), &after)
    }

    pub(crate) fn session_ended(row: &SessionRow) -> Self {
        Self {
            action: "session.end",
            target: row.actor.clone(),
            before: Some(json!({ "name": row.name, "role": row.role.as_str() }).to_string()),
            after: None,
        }
    }
}
