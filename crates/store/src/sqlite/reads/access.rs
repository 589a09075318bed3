//! Reads tokens and sessions of the admin API.

use ledger::UnixMs;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::records::access::{SessionRow, TokenCursor, TokenQuery, TokenRow};
use crate::records::ids::Digest;

/// Columns of a token, for [`token_row`].
pub(crate) const TOKEN: &str =
    "n, id, name, role, shown_prefix, created_at, last_used_at, revoked_at";

pub(crate) fn tokens(on: &Connection, query: TokenQuery) -> rusqlite::Result<Vec<TokenRow>> {
    let after = query.after.map_or(0, |TokenCursor(after)| after);
    let select = format!("SELECT {TOKEN} FROM admin_tokens WHERE n > ?1 ORDER BY n LIMIT ?2");
    let mut select = on.prepare_cached(&select)?;
    let rows = select.query_map(params![after, query.rows_max()], token_row)?;
    rows.collect()
}

pub(crate) fn token_by_digest(
    on: &Connection,
    digest: &Digest,
) -> rusqlite::Result<Option<TokenRow>> {
    let select =
        format!("SELECT {TOKEN} FROM admin_tokens WHERE digest = ?1 AND revoked_at IS NULL");
    let mut select = on.prepare_cached(&select)?;
    select.query_row([digest.as_bytes()], token_row).optional()
}

pub(crate) fn token_row(row: &Row<'_>) -> rusqlite::Result<TokenRow> {
    let time = |column| -> rusqlite::Result<Option<UnixMs>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(UnixMs::new))
    };
    Ok(TokenRow {
        cursor: TokenCursor(row.get(0)?),
        id: row.get(1)?,
        name: row.get(2)?,
        role: row.get(3)?,
        shown_prefix: row.get(4)?,
        created_at: UnixMs::new(row.get(5)?),
        last_used_at: time(6)?,
        revoked_at: time(7)?,
    })
}

/// Reads a session that has not ended and whose token is not revoked.
pub(crate) fn session(
    on: &Connection,
    digest: &Digest,
    now: UnixMs,
) -> rusqlite::Result<Option<SessionRow>> {
    let select = "SELECT s.token, s.actor, s.name, s.role, s.expires_at
         FROM admin_sessions s LEFT JOIN admin_tokens t ON t.digest = s.token
         WHERE s.digest = ?1 AND s.expires_at > ?2 AND t.revoked_at IS NULL";
    let mut select = on.prepare_cached(select)?;
    let row = select.query_row(params![digest.as_bytes(), now.get()], |row| {
        Ok(SessionRow {
            token: row.get::<_, Option<[u8; 32]>>(0)?.map(Digest::new),
            actor: row.get(1)?,
            name: row.get(2)?,
            role: row.get(3)?,
            expires_at: UnixMs::new(row.get(4)?),
        })
    });
    row.optional()
}
