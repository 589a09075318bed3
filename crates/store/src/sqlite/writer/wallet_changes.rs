//! Makes administrative changes of wallets.
//!
//! Each change is checked first. Then its rows and its audit row are written, and the books are changed last. So a
//! failed change does not affect the books, and `atomically` undoes its writes.

use ledger::{Micro, UnixMs};
use rusqlite::{OptionalExtension as _, Row, params};

use super::ledger::Ledger;
use crate::books::{FoundEntry, ManualFacts, NewAuditRow, WalletDecision, WalletOpening};
use crate::chain::Head;
use crate::error::StoreError;
use crate::queue::command::WalletChange;
use crate::records::accounts::{NewWallet, WalletRow};
use crate::records::audit::Actor;
use crate::records::ids::WalletId;
use crate::records::manual::{ChangedWallet, NewEntry};
use crate::sqlite::rows::{WALLET, wallet_row};

/// Columns of a manual entry, for [`found_entry`].
const FOUND: &str = "seq, kind, balance_delta + gift_delta - credit_delta, refund_of";

impl Ledger<'_> {
    pub(crate) fn create_wallet(
        &mut self,
        id: WalletId,
        new: NewWallet,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let opening = WalletOpening::of(&new)?;
        let (name, wallet) = (new.name, opening.wallet);
        self.check_name_is_free(&name, None)?;
        let insert = "INSERT INTO wallets (id, name, status, credit_limit, created_at, head)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.connection.prepare_cached(insert)?.execute(params![
            id,
            name,
            wallet.status.as_str(),
            wallet.credit_limit.get(),
            now.get(),
            Head::of_wallet(id),
        ])?;
        let n = self.connection.last_insert_rowid();
        let row = WalletRow {
            id,
            name,
            wallet,
            alert_below: None,
            created_at: now,
        };
        self.audit(&NewAuditRow::wallet_created(&row), now, actor)?;
        self.books.open_wallet(n, id, opening, now, &actor.name);
        Ok(row)
    }

    /// Changes a wallet and posts entries that record the reason. A failed change has no effect.
    pub(crate) fn change_wallet(
        &mut self,
        id: WalletId,
        change: &WalletChange,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<ChangedWallet, StoreError> {
        change.check()?;
        let missing = || StoreError::NotFound {
            what: "wallet",
            id: id.to_string(),
        };
        let select = format!("SELECT {WALLET}, w.n FROM wallets w WHERE w.id = ?1");
        let found = self
            .connection
            .prepare_cached(&select)?
            .query_row([id], |row| Ok((wallet_row(row)?, row.get("n")?)));
        let (stored, n) = found.optional()?.ok_or_else(missing)?;
        self.load_wallet(n)?;
        let row = self.books.wallets.get_mut(n).ok_or_else(missing)?;
        let before = WalletRow {
            wallet: row.wallet,
            ..stored
        };
        let facts = match change {
            WalletChange::Manual(new) => self.manual_facts(n, new)?,
            WalletChange::Settings(_) => ManualFacts::default(),
        };
        let prepared = match change.prepare(before.wallet, &facts)? {
            WalletDecision::Change(prepared) => prepared,
            WalletDecision::Exists(seq) => {
                return Ok(ChangedWallet {
                    row: before,
                    entry: Some((seq, false)),
                });
            }
        };
        let mut after = WalletRow {
            wallet: prepared.wallet,
            ..before.clone()
        };
        if let WalletChange::Settings(settings) = change {
            if let Some(name) = &settings.name {
                self.check_name_is_free(name, Some(n))?;
                after.name.clone_from(name);
            }
            after.alert_below = settings.alert_below.unwrap_or(after.alert_below);
            if after == before {
                return Ok(ChangedWallet::unchanged(before));
            }
            // The batch writes the amounts of a wallet. Only its settings are written here.
            let update = "UPDATE wallets SET name = ?2, status = ?3, credit_limit = ?4, alert_below = ?5 WHERE n = ?1";
            self.connection.prepare_cached(update)?.execute(params![
                n,
                after.name,
                after.wallet.status.as_str(),
                after.wallet.credit_limit.get(),
                after.alert_below.map(Micro::get),
            ])?;
        }
        self.audit(
            &NewAuditRow::wallet_changed(&before, &after, change),
            now,
            actor,
        )?;
        let made = self.books.make_change(n, prepared, now, &actor.name);
        let seq = made.ok_or_else(missing)?;
        Ok(ChangedWallet {
            row: after,
            entry: Some((seq, true)),
        })
    }

    pub(super) fn check_name_is_free(
        &self,
        name: &str,
        except: Option<i64>,
    ) -> Result<(), StoreError> {
        let taken = "SELECT 1 FROM wallets WHERE name = ?1 AND n IS NOT ?2";
        let mut taken = self.connection.prepare_cached(taken)?;
        if taken.exists(params![name, except])? {
            return Err(StoreError::Taken {
                what: "wallet",
                name: name.to_owned(),
            });
        }
        Ok(())
    }

    /// Looks up the entries that a new manual entry depends on, in the table and in the pending batch.
    fn manual_facts(&self, wallet: i64, new: &NewEntry) -> Result<ManualFacts, StoreError> {
        let same_reference = match &new.reference {
            Some(reference) => self.entry_by_reference(wallet, reference)?,
            None => None,
        };
        let mut facts = ManualFacts {
            same_reference,
            ..ManualFacts::default()
        };
        let Some(name) = &new.refund_of else {
            return Ok(facts);
        };
        facts.refunded = self.entry_by_reference(wallet, name)?;
        if let (None, Ok(seq)) = (facts.refunded, name.parse()) {
            facts.refunded = self.entry_by_number(wallet, seq)?;
        }
        if let Some(refunded) = facts.refunded {
            facts.refunds = self.refunds_of(wallet, refunded.seq)?;
        }
        Ok(facts)
    }

    fn entry_by_reference(
        &self,
        wallet: i64,
        reference: &str,
    ) -> rusqlite::Result<Option<FoundEntry>> {
        if let Some(found) = self.books.pending_reference(wallet, reference) {
            return Ok(Some(found));
        }
        let select = format!("SELECT {FOUND} FROM entries WHERE wallet = ?1 AND reference = ?2");
        let mut select = self.connection.prepare_cached(&select)?;
        select
            .query_row(params![wallet, reference], found_entry)
            .optional()
    }

    fn entry_by_number(&self, wallet: i64, seq: i64) -> rusqlite::Result<Option<FoundEntry>> {
        if let Some(found) = self.books.pending_entry(wallet, seq) {
            return Ok(Some(found));
        }
        let select = format!(
            "SELECT {FOUND} FROM entries INDEXED BY entries_by_people
             WHERE wallet = ?1 AND seq = ?2 AND closes IS NULL AND part_of IS NULL"
        );
        let mut select = self.connection.prepare_cached(&select)?;
        select.query_row([wallet, seq], found_entry).optional()
    }

    fn refunds_of(&self, wallet: i64, seq: i64) -> rusqlite::Result<i64> {
        let sum = "SELECT coalesce(sum(balance_delta + gift_delta - credit_delta), 0) FROM entries
                   WHERE wallet = ?1 AND refund_of = ?2";
        let mut sum = self.connection.prepare_cached(sum)?;
        let written: i64 = sum.query_row([wallet, seq], |row| row.get(0))?;
        Ok(written.saturating_add(self.books.pending_refunds(wallet, seq)))
    }
}

fn found_entry(row: &Row<'_>) -> rusqlite::Result<FoundEntry> {
    Ok(FoundEntry {
        seq: row.get(0)?,
        kind: row.get(1)?,
        total: row.get(2)?,
        refund_of: row.get(3)?,
    })
}
