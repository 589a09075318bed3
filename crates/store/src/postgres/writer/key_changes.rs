//! Creates and changes keys for operators. A change locks the wallet's row, because calls change the same key rows.

use ledger::{Micro, UnixMs};
use tokio_postgres::types::ToSql;

use super::change_lock::{ChangeError, locked_wallet};
use super::transaction::LockedWallets;
use crate::books::{EditedKey, NewAuditRow, edited_key, new_key};
use crate::error::StoreError;
use crate::postgres::connection::ledger_connection::Session;
use crate::postgres::rows::{KEY, key_row};
use crate::queue::command::KeyEdit;
use crate::records::accounts::{KeyRotation, KeyRow, NewKey};
use crate::records::calendar::Calendar;
use crate::records::ids::{Digest, KeyId, WalletId};
use crate::records::tags::tags_column;

const INSERT: &str =
    "INSERT INTO keys (id, wallet, name, digest, shown_prefix, expires_at, spend_limit, rpm_limit,
    tpm_limit, concurrency_limit, created_at, models, tags, window_amount, window_per, window_zone)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    ON CONFLICT (digest) DO NOTHING RETURNING n";

const UPDATE: &str = "UPDATE keys SET name = $2, enabled = $3, expires_at = $4, spend_limit = $5, rpm_limit = $6,
    tpm_limit = $7, concurrency_limit = $8, models = $9, tags = $10, window_amount = $11, window_per = $12,
    window_zone = $13, window_before = $14, window_ends_at = $15, window_entries = $16 WHERE id = $1";

pub(super) async fn create_key(
    session: &Session,
    id: KeyId,
    new: &NewKey,
    now: UnixMs,
) -> Result<KeyRow, ChangeError> {
    let wallet = new.wallet.to_string();
    let found = "SELECT n, name FROM wallets WHERE id = $1";
    let Some(found) = session.client.query_opt(found, &[&wallet]).await? else {
        return Err(ChangeError::Refused(StoreError::NotFound {
            what: "wallet",
            id: wallet,
        }));
    };
    let n: i64 = found.try_get(0)?;
    let row = new_key(id, new.clone(), found.try_get(1)?, now)?;
    refuse_known_secret(session, &new.digest, &new.shown_prefix).await?;
    let (key, calendar) = (&row.key, row.calendar.as_ref());
    let made = session
        .client
        .query_opt(
            INSERT,
            &[
                &id.to_string(),
                &n,
                &row.name,
                &new.digest.as_bytes().as_slice(),
                &row.shown_prefix,
                &key.expires_at.map(UnixMs::get),
                &key.limit.map(Micro::get),
                &key.rpm_limit.map(i64::from),
                &key.tpm_limit.map(i64::from),
                &key.concurrency_limit.map(i64::from),
                &now.get(),
                &row.models.as_ref().map(ToString::to_string),
                &tags_column(&row.tags),
                &key.window.map(|window| window.amount.get()),
                &calendar.map(|calendar| calendar.per().as_str()),
                &calendar.map(Calendar::time_zone),
            ],
        )
        .await?;
    if made.is_none() {
        return Err(taken(&new.shown_prefix));
    }
    Ok(row)
}

/// Changes a key. Returns its audit row, or nothing if the key was not changed.
pub(super) async fn change_key(
    session: &Session,
    id: KeyId,
    edit: &KeyEdit,
    locked_wallets: LockedWallets,
) -> Result<(KeyRow, Option<NewAuditRow>), ChangeError> {
    let text = id.to_string();
    let missing = || {
        ChangeError::Refused(StoreError::NotFound {
            what: "key",
            id: id.to_string(),
        })
    };
    let owner = "SELECT w.id FROM keys k JOIN wallets w ON w.n = k.wallet WHERE k.id = $1";
    let owner = session.client.query_opt(owner, &[&text]).await?;
    let owner: WalletId = owner.ok_or_else(missing)?.try_get(0)?;
    locked_wallet(session, owner, locked_wallets).await?;
    // Read after the lock is taken, because the row may have changed before.
    let select =
        format!("SELECT {KEY} FROM keys k JOIN wallets w ON w.n = k.wallet WHERE k.id = $1");
    let stored = session.client.query_opt(&select, &[&text]).await?;
    let before = key_row(&stored.ok_or_else(missing)?)?;
    let row = match edited_key(&before, before.key, edit.clone())? {
        EditedKey::Changed(row) => row,
        EditedKey::Unchanged(row) => return Ok((row, None)),
    };
    match edit {
        KeyEdit::Rotate(rotation) => rotate(session, &text, rotation).await?,
        KeyEdit::Limits(_) | KeyEdit::Enabled(_) => update(session, &text, &row).await?,
    }
    let audited = NewAuditRow::key_changed(&before, &row, edit);
    Ok((row, Some(audited)))
}

async fn update(session: &Session, id: &str, row: &KeyRow) -> Result<(), ChangeError> {
    let (key, calendar) = (&row.key, row.calendar.as_ref());
    let window = key.window.unwrap_or_default();
    session
        .client
        .execute(
            UPDATE,
            &[
                &id,
                &row.name,
                &key.enabled,
                &key.expires_at.map(UnixMs::get),
                &key.limit.map(Micro::get),
                &key.rpm_limit.map(i64::from),
                &key.tpm_limit.map(i64::from),
                &key.concurrency_limit.map(i64::from),
                &row.models.as_ref().map(ToString::to_string),
                &tags_column(&row.tags),
                &key.window.map(|window| window.amount.get()),
                &calendar.map(|calendar| calendar.per().as_str()),
                &calendar.map(Calendar::time_zone),
                &window.usage_before.get(),
                &window.period.ends_at.get(),
                &window.period.entries_before,
            ],
        )
        .await?;
    Ok(())
}

/// Replaces the secret of a key. Keeps the previous secret if it stays valid for a while.
async fn rotate(session: &Session, id: &str, rotation: &KeyRotation) -> Result<(), ChangeError> {
    refuse_known_secret(session, &rotation.digest, &rotation.shown_prefix).await?;
    let update =
        "UPDATE keys SET old_digest = CASE WHEN $4::bigint IS NULL THEN NULL ELSE digest END,
                  old_secret_until = $4, digest = $2, shown_prefix = $3 WHERE id = $1";
    let until = rotation.old_secret_until.map(UnixMs::get);
    let digest = rotation.digest.as_bytes().as_slice();
    let values: [&(dyn ToSql + Sync); 4] = [&id, &digest, &rotation.shown_prefix, &until];
    session.client.execute(update, &values).await?;
    Ok(())
}

async fn refuse_known_secret(
    session: &Session,
    digest: &Digest,
    shown_prefix: &str,
) -> Result<(), ChangeError> {
    let known = "SELECT 1 FROM keys WHERE digest = $1 OR old_digest = $1";
    let digest = digest.as_bytes().as_slice();
    match session.client.query_opt(known, &[&digest]).await? {
        Some(_) => Err(taken(shown_prefix)),
        None => Ok(()),
    }
}

fn taken(shown_prefix: &str) -> ChangeError {
    ChangeError::Refused(StoreError::Taken {
        what: "key",
        name: shown_prefix.to_owned(),
    })
}
