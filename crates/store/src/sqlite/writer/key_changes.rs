//! Makes administrative changes of keys.
//!
//! Only the settings of a key are written here. The values that calls change are written by the batch. As in
//! `wallet_changes`, the books are changed last.

use ledger::{Micro, UnixMs};
use rusqlite::{OptionalExtension as _, params};

use super::ledger::Ledger;
use crate::books::{EditedKey, NewAuditRow, edited_key, new_key};
use crate::error::StoreError;
use crate::queue::command::KeyEdit;
use crate::records::accounts::{KeyRotation, KeyRow, NewKey};
use crate::records::audit::Actor;
use crate::records::calendar::Calendar;
use crate::records::ids::{Digest, KeyId, WalletId};
use crate::records::tags::tags_column;
use crate::sqlite::rows::{FROM_KEYS, KEY, key_row};

const INSERT: &str =
    "INSERT INTO keys (id, wallet, name, digest, shown_prefix, expires_at, spend_limit, rpm_limit,
     tpm_limit, concurrency_limit, created_at, models, tags, window_amount, window_per, window_zone)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

const UPDATE: &str = "UPDATE keys SET name = ?2, enabled = ?3, expires_at = ?4, spend_limit = ?5, rpm_limit = ?6,
     tpm_limit = ?7, concurrency_limit = ?8, models = ?9, tags = ?10, window_amount = ?11, window_per = ?12,
     window_zone = ?13 WHERE n = ?1";

impl Ledger<'_> {
    pub(crate) fn create_key(
        &mut self,
        id: KeyId,
        new: NewKey,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        let (n, wallet_name) = self.wallet_of_key(new.wallet)?;
        self.refuse_known_secret(&new.digest, &new.shown_prefix)?;
        let digest = new.digest;
        let row = new_key(id, new, wallet_name, now)?;
        let (key, calendar) = (&row.key, row.calendar.as_ref());
        self.connection.prepare_cached(INSERT)?.execute(params![
            id,
            n,
            row.name,
            digest.as_bytes(),
            row.shown_prefix,
            key.expires_at.map(UnixMs::get),
            key.limit.map(Micro::get),
            key.rpm_limit,
            key.tpm_limit,
            key.concurrency_limit,
            now.get(),
            row.models.as_ref().map(ToString::to_string),
            tags_column(&row.tags),
            key.window.map(|window| window.amount.get()),
            calendar.map(|calendar| calendar.per().as_str()),
            calendar.map(Calendar::time_zone),
        ])?;
        self.audit(&NewAuditRow::key_created(&row), now, actor)?;
        Ok(row)
    }

    pub(crate) fn change_key(
        &mut self,
        id: KeyId,
        edit: &KeyEdit,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        let missing = || StoreError::NotFound {
            what: "key",
            id: id.to_string(),
        };
        let select = format!("SELECT {KEY} {FROM_KEYS} WHERE k.id = ?1");
        let stored = self
            .connection
            .prepare_cached(&select)?
            .query_row([id], key_row)
            .optional()?;
        let before = stored.ok_or_else(missing)?;
        self.load_key(id)?;
        let rows = self.books.rows_of(id).ok_or_else(missing)?;
        let (n, key) = (rows.key.n, rows.key.key);
        let row = match edited_key(&before, key, edit.clone())? {
            EditedKey::Changed(row) => row,
            EditedKey::Unchanged(row) => return Ok(row),
        };
        match edit {
            KeyEdit::Rotate(rotation) => self.rotate(n, rotation)?,
            KeyEdit::Limits(_) | KeyEdit::Enabled(_) => self.update_key(n, &row)?,
        }
        self.audit(&NewAuditRow::key_changed(&before, &row, edit), now, actor)?;
        if let Some(mut rows) = self.books.rows_of(id) {
            rows.key.key = row.key;
            rows.key.calendar.clone_from(&row.calendar);
            if row.key.window != key.window {
                rows.touch_key();
            }
        }
        Ok(row)
    }

    fn update_key(&self, n: i64, row: &KeyRow) -> Result<(), StoreError> {
        let (key, calendar) = (&row.key, row.calendar.as_ref());
        self.connection.prepare_cached(UPDATE)?.execute(params![
            n,
            row.name,
            key.enabled,
            key.expires_at.map(UnixMs::get),
            key.limit.map(Micro::get),
            key.rpm_limit,
            key.tpm_limit,
            key.concurrency_limit,
            row.models.as_ref().map(ToString::to_string),
            tags_column(&row.tags),
            key.window.map(|window| window.amount.get()),
            calendar.map(|calendar| calendar.per().as_str()),
            calendar.map(Calendar::time_zone),
        ])?;
        Ok(())
    }

    /// Replaces the secret of a key. Keeps the previous secret if it stays valid for a while.
    fn rotate(&self, n: i64, rotation: &KeyRotation) -> Result<(), StoreError> {
        self.refuse_known_secret(&rotation.digest, &rotation.shown_prefix)?;
        let until = rotation.old_secret_until.map(UnixMs::get);
        let update = "UPDATE keys SET old_digest = CASE WHEN ?4 IS NULL THEN NULL ELSE digest END,
                      old_secret_until = ?4, digest = ?2, shown_prefix = ?3 WHERE n = ?1";
        self.connection.prepare_cached(update)?.execute(params![
            n,
            rotation.digest.as_bytes(),
            rotation.shown_prefix,
            until,
        ])?;
        Ok(())
    }

    pub(super) fn refuse_known_secret(
        &self,
        digest: &Digest,
        shown_prefix: &str,
    ) -> Result<(), StoreError> {
        let known = "SELECT 1 FROM keys WHERE digest = ?1 OR old_digest = ?1";
        let mut known = self.connection.prepare_cached(known)?;
        if known.exists([digest.as_bytes()])? {
            return Err(StoreError::Taken {
                what: "key",
                name: shown_prefix.to_owned(),
            });
        }
        Ok(())
    }

    /// The row number and the name of a new key's wallet.
    pub(super) fn wallet_of_key(&self, wallet: WalletId) -> Result<(i64, String), StoreError> {
        let select = "SELECT n, name FROM wallets WHERE id = ?1";
        let found = self
            .connection
            .prepare_cached(select)?
            .query_row([wallet], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        found.ok_or_else(|| StoreError::NotFound {
            what: "wallet",
            id: wallet.to_string(),
        })
    }
}
