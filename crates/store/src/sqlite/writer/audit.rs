//! Writes audit rows in the transaction of the changes that they describe.

use ledger::UnixMs;
use rusqlite::params;

use super::ledger::Ledger;
use crate::books::NewAuditRow;
use crate::error::StoreError;
use crate::records::audit::Actor;

impl Ledger<'_> {
    /// Makes a change within a savepoint. If the change fails, the transaction is as it was before.
    pub(crate) fn atomically<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.connection.execute_batch("SAVEPOINT change")?;
        let made = change(self);
        if made.is_err() && self.is_in_transaction() {
            self.connection.execute_batch("ROLLBACK TO change")?;
        }
        // If the database has ended the transaction on its own, the savepoint is gone too.
        if self.is_in_transaction() {
            self.connection.execute_batch("RELEASE change")?;
        }
        made
    }

    pub(crate) fn audit(
        &mut self,
        audited: &NewAuditRow,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO audit (at, actor, actor_name, role, action, target, before, after, request_id)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        self.connection.prepare_cached(insert)?.execute(params![
            now.get(),
            actor.id,
            actor.name,
            actor.role.as_str(),
            audited.action,
            audited.target,
            audited.before,
            audited.after,
            actor.request_id,
        ])?;
        self.books.pending.wrote = true;
        Ok(())
    }
}
