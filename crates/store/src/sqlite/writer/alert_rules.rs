//! Changes alert rules in the transaction of the ledger's batch.

use ledger::{Micro, UnixMs};
use rusqlite::{OptionalExtension as _, params};

use super::ledger::Ledger;
use crate::books::{NewAuditRow, checked_rule, no_rule, no_wallet_of_rule};
use crate::error::StoreError;
use crate::queue::command::RuleChange;
use crate::records::alerts::{NewRule, RuleRow, kinds_text};
use crate::records::audit::Actor;
use crate::records::ids::RuleId;
use crate::sqlite::alerts::lookups::{RULES, rule_row};

impl Ledger<'_> {
    pub(crate) fn change_rule(
        &mut self,
        change: &RuleChange,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<RuleRow, StoreError> {
        match change {
            RuleChange::Create { id, new } => {
                self.create_rule(*id, new, now)?;
                self.audit(&NewAuditRow::rule_created(*id, new), now, actor)?;
                self.find_rule(*id)
            }
            RuleChange::Remove(id) => {
                let row = self.find_rule(*id)?;
                let deliveries = "DELETE FROM alert_deliveries WHERE rule = (SELECT n FROM alert_rules WHERE id = ?1)";
                for delete in [deliveries, "DELETE FROM alert_rules WHERE id = ?1"] {
                    self.connection.prepare_cached(delete)?.execute([id])?;
                }
                self.audit(&NewAuditRow::rule_removed(&row), now, actor)?;
                Ok(row)
            }
        }
    }

    fn create_rule(&mut self, id: RuleId, new: &NewRule, now: UnixMs) -> Result<(), StoreError> {
        let count = "SELECT count(*) FROM alert_rules";
        let others: i64 = self
            .connection
            .prepare_cached(count)?
            .query_row([], |row| row.get(0))?;
        checked_rule(new, usize::try_from(others).unwrap_or(usize::MAX))?;
        if let Some(wallet) = new.wallet {
            let mut select = self
                .connection
                .prepare_cached("SELECT 1 FROM wallets WHERE id = ?1")?;
            if !select.exists([wallet])? {
                return Err(no_wallet_of_rule(wallet));
            }
        }
        let insert = "INSERT INTO alert_rules (id, kinds, url, secret, wallet, below, created_at)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.connection.prepare_cached(insert)?.execute(params![
            id,
            kinds_text(&new.kinds),
            new.webhook.url,
            new.webhook.secret,
            new.wallet,
            new.below.map(Micro::get),
            now.get(),
        ])?;
        Ok(())
    }

    fn find_rule(&self, id: RuleId) -> Result<RuleRow, StoreError> {
        let select = format!("{RULES} WHERE r.id = ?1");
        let found = self
            .connection
            .prepare_cached(&select)?
            .query_row([id], rule_row)
            .optional()?;
        found.ok_or_else(|| no_rule(id))
    }
}
