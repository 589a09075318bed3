//! Writes audit rows in the transaction of the changes that they describe.

use ledger::UnixMs;
use tokio_postgres::ToStatement;

use crate::books::NewAuditRow;
use crate::postgres::connection::ledger_connection::Session;
use crate::records::audit::Actor;

pub(super) const INSERT: &str =
    "INSERT INTO audit (at, actor, actor_name, role, action, target, before, after, request_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

pub(super) async fn audit(
    session: &Session,
    audited: &NewAuditRow,
    now: UnixMs,
    actor: &Actor,
) -> Result<(), tokio_postgres::Error> {
    insert(session, INSERT, audited, now, actor).await
}

/// Writes an audit row. `statement` is SQL text or a prepared statement.
pub(super) async fn insert<S: ?Sized + ToStatement>(
    session: &Session,
    statement: &S,
    audited: &NewAuditRow,
    now: UnixMs,
    actor: &Actor,
) -> Result<(), tokio_postgres::Error> {
    session
        .client
        .execute(
            statement,
            &[
                &now.get(),
                &actor.id,
                &actor.name,
                &actor.role.as_str(),
                &audited.action,
                &audited.target,
                &audited.before,
                &audited.after,
                &actor.request_id,
            ],
        )
        .await?;
    Ok(())
}
