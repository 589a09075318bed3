//! Stores catalogs under consecutive version numbers.

use ledger::UnixMs;

use super::audit::audit;
use crate::postgres::connection::ledger_connection::Session;
use crate::queue::command::NewCatalog;
use crate::records::audit::Actor;

/// Stores a catalog with its audit row. Returns `None` if the latest version is not the expected one, or another node
/// was faster.
pub(super) async fn store_catalog(
    session: &Session,
    new: &NewCatalog,
    now: UnixMs,
    actor: &Actor,
) -> Result<Option<i64>, tokio_postgres::Error> {
    let version = new.expected.saturating_add(1);
    let insert = "INSERT INTO catalogs (version, document, made_by, made_at)
                  SELECT $1::bigint, $2, $3, $4 WHERE (SELECT coalesce(max(version), 0) FROM catalogs) = $5
                  ON CONFLICT (version) DO NOTHING";
    let stored = session
        .client
        .execute(
            insert,
            &[
                &version,
                &new.document,
                &actor.name,
                &now.get(),
                &new.expected,
            ],
        )
        .await?;
    if stored == 0 {
        return Ok(None);
    }
    audit(session, &new.action.clone().into(), now, actor).await?;
    Ok(Some(version))
}
