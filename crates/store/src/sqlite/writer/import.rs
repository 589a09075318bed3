//! Creates imported accounts. As in `wallet_changes`, the books are changed last.

use ledger::{Micro, UnixMs};
use rusqlite::params;

use super::ledger::Ledger;
use crate::books::{NewAuditRow, WalletOpening};
use crate::chain::Head;
use crate::error::StoreError;
use crate::records::accounts::KeyRow;
use crate::records::audit::Actor;
use crate::records::calendar::Calendar;
use crate::records::import::{ImportBatch, ImportedKey, ImportedWallet};
use crate::records::tags::tags_column;

const INSERT_WALLET: &str = "INSERT INTO wallets (id, name, status, credit_limit, created_at, head) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

const INSERT_KEY: &str =
    "INSERT INTO keys (id, wallet, name, digest, shown_prefix, enabled, expires_at, spend_limit, rpm_limit,
     tpm_limit, concurrency_limit, created_at, models, tags, window_amount, window_per, window_zone, old_digest,
     old_secret_until)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";

impl Ledger<'_> {
    pub(crate) fn import(
        &mut self,
        batch: &ImportBatch,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<(), StoreError> {
        let mut opened = Vec::with_capacity(batch.wallets.len());
        for wallet in &batch.wallets {
            let opening = wallet.opening()?;
            let n = self.insert_wallet(wallet, &opening, now)?;
            let audited = NewAuditRow::wallet_created(&wallet.row(&opening, now));
            self.audit(&audited, now, actor)?;
            opened.push((n, wallet.id, opening));
        }
        for key in &batch.keys {
            let (n, wallet_name) = self.wallet_of_key(key.new.wallet)?;
            self.refuse_known_secret(&key.new.digest, &key.new.shown_prefix)?;
            if let Some((second, _)) = &key.second_secret {
                self.refuse_known_secret(second, &key.new.shown_prefix)?;
            }
            let row = key.row(wallet_name, now)?;
            self.insert_key(n, key, &row)?;
            self.audit(&NewAuditRow::key_created(&row), now, actor)?;
        }
        for (n, id, opening) in opened {
            self.books.open_wallet(n, id, opening, now, &actor.name);
        }
        Ok(())
    }

    fn insert_wallet(
        &self,
        wallet: &ImportedWallet,
        opening: &WalletOpening,
        now: UnixMs,
    ) -> Result<i64, StoreError> {
        self.check_name_is_free(&wallet.name, None)?;
        let mut insert = self.connection.prepare_cached(INSERT_WALLET)?;
        insert.execute(params![
            wallet.id,
            wallet.name,
            opening.wallet.status.as_str(),
            opening.wallet.credit_limit.get(),
            now.get(),
            Head::of_wallet(wallet.id),
        ])?;
        Ok(self.connection.last_insert_rowid())
    }

    fn insert_key(&self, wallet: i64, key: &ImportedKey, row: &KeyRow) -> Result<(), StoreError> {
        let (limits, calendar) = (&row.key, row.calendar.as_ref());
        let second = key.second_secret.as_ref();
        self.connection
            .prepare_cached(INSERT_KEY)?
            .execute(params![
                row.id,
                wallet,
                row.name,
                key.new.digest.as_bytes(),
                row.shown_prefix,
                limits.enabled,
                limits.expires_at.map(UnixMs::get),
                limits.limit.map(Micro::get),
                limits.rpm_limit,
                limits.tpm_limit,
                limits.concurrency_limit,
                row.created_at.get(),
                row.models.as_ref().map(ToString::to_string),
                tags_column(&row.tags),
                limits.window.map(|window| window.amount.get()),
                calendar.map(|calendar| calendar.per().as_str()),
                calendar.map(Calendar::time_zone),
                second.map(|(digest, _)| digest.as_bytes()),
                second.map(|(_, until)| until.get()),
            ])?;
        Ok(())
    }
}
