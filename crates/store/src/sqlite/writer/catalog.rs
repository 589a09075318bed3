//! Stores catalogs under consecutive version numbers.

use ledger::UnixMs;
use rusqlite::params;

use super::ledger::Ledger;
use crate::error::StoreError;
use crate::queue::command::NewCatalog;
use crate::records::audit::Actor;
use crate::sqlite::reads::catalog;

impl Ledger<'_> {
    /// Stores a catalog with its audit row. Returns `None` if the latest version is not the expected one.
    pub(crate) fn store_catalog(
        &mut self,
        new: NewCatalog,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<Option<i64>, StoreError> {
        if catalog::version(self.connection)? != new.expected {
            return Ok(None);
        }
        let version = new.expected.saturating_add(1);
        let insert =
            "INSERT INTO catalogs (version, document, made_by, made_at) VALUES (?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(insert)?.execute(params![
            version,
            new.document,
            actor.name,
            now.get(),
        ])?;
        self.audit(&new.action.into(), now, actor)?;
        Ok(Some(version))
    }
}
