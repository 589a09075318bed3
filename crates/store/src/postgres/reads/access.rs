//! Reads tokens and sessions of the admin API.

use std::sync::Arc;

use ledger::UnixMs;
use tokio_postgres::{Client, Row};

use crate::postgres::rows::time;
use crate::records::access::{SessionRow, TokenCursor, TokenQuery, TokenRow};
use crate::records::ids::Digest;

type Read<T> = Result<T, tokio_postgres::Error>;

/// Columns of a token, for [`token_row`].
pub(crate) const TOKEN: &str =
    "n, id, name, role, shown_prefix, created_at, last_used_at, revoked_at";

pub(crate) async fn tokens(on: Arc<Client>, query: TokenQuery) -> Read<Vec<TokenRow>> {
    let after = query.after.map_or(0, |TokenCursor(after)| after);
    let limit = i64::from(query.rows_max());
    let select = format!("SELECT {TOKEN} FROM admin_tokens WHERE n > $1 ORDER BY n LIMIT $2");
    let rows = on.query(&select, &[&after, &limit]).await?;
    rows.iter().map(token_row).collect()
}

pub(crate) async fn token_by_digest(on: Arc<Client>, digest: Digest) -> Read<Option<TokenRow>> {
    let select =
        format!("SELECT {TOKEN} FROM admin_tokens WHERE digest = $1 AND revoked_at IS NULL");
    let bytes = digest.as_bytes().as_slice();
    let found = on.query_opt(&select, &[&bytes]).await?;
    found.as_ref().map(token_row).transpose()
}

pub(crate) fn token_row(row: &Row) -> Read<TokenRow> {
    let later = |column| Read::Ok(row.try_get::<_, Option<i64>>(column)?.map(UnixMs::new));
    Ok(TokenRow {
        cursor: TokenCursor(row.try_get(0)?),
        id: row.try_get(1)?,
        name: row.try_get(2)?,
        role: row.try_get(3)?,
        shown_prefix: row.try_get(4)?,
        created_at: time(row, 5)?,
        last_used_at: later(6)?,
        revoked_at: later(7)?,
    })
}

pub(crate) async fn session(on: Arc<Client>, digest: Digest) -> Read<Option<SessionRow>> {
    session_of(&on, &digest).await
}

/// Reads a session that has not ended by the database's clock and whose token is not revoked.
pub(crate) async fn session_of(on: &Client, digest: &Digest) -> Read<Option<SessionRow>> {
    let select = "SELECT s.token, s.actor, s.name, s.role, s.expires_at
         FROM admin_sessions s LEFT JOIN admin_tokens t ON t.digest = s.token
         WHERE s.digest = $1 AND t.revoked_at IS NULL
           AND s.expires_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let found = on
        .query_opt(select, &[&digest.as_bytes().as_slice()])
        .await?;
    let Some(row) = found else {
        return Ok(None);
    };
    let token: Option<&[u8]> = row.try_get(0)?;
    Ok(Some(SessionRow {
        // The table has a CHECK constraint on its length.
        token: token
            .and_then(|bytes| bytes.try_into().ok())
            .map(Digest::new),
        actor: row.try_get(1)?,
        name: row.try_get(2)?,
        role: row.try_get(3)?,
        expires_at: time(&row, 4)?,
    }))
}
