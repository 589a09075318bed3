//! Administrative changes in the ledger: wallets, keys and price versions.
//!
//! Each one checks first and writes last, so that a refused change leaves the batch as it was.

use ledger::{Bucket, Delta, Key, Micro, UnixMs, Wallet, WalletStatus};
use rusqlite::{OptionalExtension as _, params};

use super::ledger::Ledger;
use super::pending::{Posting, What};
use super::rows::{CachedWallet, KEY, WALLET, key_row, wallet_row};
use crate::accounts::{KeyChange, KeyLimits, KeyRow, NewKey, NewWallet, WalletRow};
use crate::command::Credit;
use crate::entries::EntryKind;
use crate::error::StoreError;
use crate::ids::{KeyId, PriceVersion, WalletId};

/// The longest name of a wallet or key, and note of an entry.
const TEXT_CHARS_MAX: usize = 200;

impl Ledger<'_> {
    pub(super) fn create_wallet(
        &mut self,
        id: WalletId,
        new: NewWallet,
        now: UnixMs,
    ) -> Result<WalletRow, StoreError> {
        let NewWallet {
            name,
            balance,
            gift,
            credit_limit,
        } = new;
        check_name("wallet", &name)?;
        if name.starts_with(WalletId::PREFIX) {
            return Err(StoreError::Invalid(
                "a wallet's name does not look like an id".to_owned(),
            ));
        }
        let mut wallet = Wallet::default();
        let topped = wallet.top_up(balance).map_err(overflow)?;
        let gifted = wallet.gift(gift).map_err(overflow)?;
        wallet.set_credit_limit(credit_limit).map_err(overflow)?;
        let no_delta = Delta::default();

        let taken = "SELECT 1 FROM wallets WHERE name = ?1";
        if self.connection.prepare_cached(taken)?.exists([&name])? {
            return Err(StoreError::Taken {
                what: "wallet",
                name,
            });
        }
        let insert = "INSERT INTO wallets (id, name, status, created_at) VALUES (?1, ?2, ?3, ?4)";
        let status = wallet.status.as_str();
        self.connection
            .prepare_cached(insert)?
            .execute(params![id, name, status, now.get()])?;
        let n = self.connection.last_insert_rowid();
        self.pending.wrote = true;

        let mut row = CachedWallet {
            wallet,
            entries: 0,
            holds_opened: 0,
            dirty: false,
        };
        for (kind, amount, delta) in [
            (EntryKind::TopUp, balance, topped),
            (EntryKind::Gift, gift, gifted),
            (EntryKind::CreditLimit, credit_limit, no_delta),
        ] {
            if amount != Micro::ZERO {
                let note = Some(match kind {
                    EntryKind::CreditLimit => {
                        format!("opening: {} -> {amount}", Micro::ZERO).into()
                    }
                    _ => "opening".into(),
                });
                self.pending
                    .postings
                    .push(credit_posting(n, &mut row, kind, delta, note, now));
            }
        }
        row.touch(n, &mut self.pending);
        self.wallets.insert(n, row);
        Ok(WalletRow {
            id,
            name,
            wallet,
            created_at: now,
        })
    }

    pub(super) fn credit(
        &mut self,
        id: WalletId,
        credit: Credit,
        amount: Micro,
        note: &str,
        now: UnixMs,
    ) -> Result<WalletRow, StoreError> {
        if amount <= Micro::ZERO {
            return Err(StoreError::Invalid(
                "the amount must be above zero".to_owned(),
            ));
        }
        let note = (!note.is_empty()).then(|| note.chars().take(TEXT_CHARS_MAX).collect());
        self.change_wallet(id, now, |wallet| match credit {
            Credit::TopUp => Ok((EntryKind::TopUp, wallet.top_up(amount)?, note)),
            Credit::Gift => Ok((EntryKind::Gift, wallet.gift(amount)?, note)),
        })
    }

    pub(super) fn set_credit_limit(
        &mut self,
        id: WalletId,
        limit: Micro,
        now: UnixMs,
    ) -> Result<WalletRow, StoreError> {
        self.change_wallet(id, now, |wallet| {
            let note = format!("{} -> {limit}", wallet.credit_limit);
            wallet.set_credit_limit(limit)?;
            Ok((EntryKind::CreditLimit, Delta::default(), Some(note.into())))
        })
    }

    pub(super) fn set_status(
        &mut self,
        id: WalletId,
        status: WalletStatus,
        now: UnixMs,
    ) -> Result<WalletRow, StoreError> {
        self.change_wallet(id, now, |wallet| {
            let note = format!("{} -> {}", wallet.status.as_str(), status.as_str());
            wallet.status = status;
            Ok((EntryKind::Status, Delta::default(), Some(note.into())))
        })
    }

    /// Changes a wallet and posts why; a change that fails has changed nothing.
    fn change_wallet(
        &mut self,
        id: WalletId,
        now: UnixMs,
        change: impl FnOnce(
            &mut Wallet,
        ) -> Result<(EntryKind, Delta, Option<Box<str>>), ledger::Overflow>,
    ) -> Result<WalletRow, StoreError> {
        let missing = || StoreError::NotFound {
            what: "wallet",
            id: id.to_string(),
        };
        let select = format!("SELECT {WALLET}, w.n FROM wallets w WHERE w.id = ?1");
        let found = self
            .connection
            .prepare_cached(&select)?
            .query_row([id], |row| Ok((wallet_row(row)?, row.get(11)?)));
        let (stored, n) = found.optional()?.ok_or_else(missing)?;
        let (row, pending) = self.wallet_row(n)?.ok_or_else(missing)?;
        let mut wallet = row.wallet;
        let (kind, delta, note) = change(&mut wallet).map_err(overflow)?;
        row.wallet = wallet;
        row.touch(n, pending);
        pending
            .postings
            .push(credit_posting(n, row, kind, delta, note, now));
        Ok(WalletRow { wallet, ..stored })
    }

    pub(super) fn create_key(
        &mut self,
        id: KeyId,
        new: NewKey,
        now: UnixMs,
    ) -> Result<KeyRow, StoreError> {
        let NewKey {
            wallet,
            name,
            digest,
            shown_prefix,
            limits,
        } = new;
        if let Some(name) = &name {
            check_name("key", name)?;
        }
        check_limits(&limits)?;
        let select = "SELECT n FROM wallets WHERE id = ?1";
        let n: Option<i64> = self
            .connection
            .prepare_cached(select)?
            .query_row([wallet], |row| row.get(0))
            .optional()?;
        let n = n.ok_or_else(|| StoreError::NotFound {
            what: "wallet",
            id: wallet.to_string(),
        })?;
        let taken = "SELECT 1 FROM keys WHERE digest = ?1";
        if self
            .connection
            .prepare_cached(taken)?
            .exists([digest.as_bytes()])?
        {
            return Err(StoreError::Taken {
                what: "key",
                name: shown_prefix,
            });
        }
        let insert = "INSERT INTO keys (id, wallet, name, digest, shown_prefix, expires_at, spend_limit, rpm_limit,
                      tpm_limit, concurrency_limit, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        self.connection.prepare_cached(insert)?.execute(params![
            id,
            n,
            name,
            digest.as_bytes(),
            shown_prefix,
            limits.expires_at.map(UnixMs::get),
            limits.limit.map(Micro::get),
            limits.rpm,
            limits.tpm,
            limits.concurrency,
            now.get(),
        ])?;
        self.pending.wrote = true;
        let key = Key {
            enabled: true,
            expires_at: limits.expires_at,
            limit: limits.limit,
            usage: Micro::ZERO,
            frozen: Micro::ZERO,
            open_holds: 0,
            rpm_limit: limits.rpm,
            tpm_limit: limits.tpm,
            concurrency_limit: limits.concurrency,
            rpm: Bucket::default(),
            tpm: Bucket::default(),
        };
        Ok(KeyRow {
            id,
            wallet,
            name,
            shown_prefix,
            key,
            created_at: now,
        })
    }

    pub(super) fn update_key(
        &mut self,
        id: KeyId,
        change: KeyChange,
    ) -> Result<KeyRow, StoreError> {
        if let Some(Some(name)) = &change.name {
            check_name("key", name)?;
        }
        let set = |key: &mut Key| {
            key.limit = change.limit.unwrap_or(key.limit);
            key.rpm_limit = change.rpm.unwrap_or(key.rpm_limit);
            key.tpm_limit = change.tpm.unwrap_or(key.tpm_limit);
            key.concurrency_limit = change.concurrency.unwrap_or(key.concurrency_limit);
            key.expires_at = change.expires_at.unwrap_or(key.expires_at);
        };
        self.change_key(id, change.name, set)
    }

    pub(super) fn enable_key(&mut self, id: KeyId, enabled: bool) -> Result<KeyRow, StoreError> {
        self.change_key(id, None, |key| key.enabled = enabled)
    }

    #[expect(
        clippy::option_option,
        reason = "leave, take away and set are three wishes"
    )]
    fn change_key(
        &mut self,
        id: KeyId,
        name: Option<Option<String>>,
        set: impl FnOnce(&mut Key),
    ) -> Result<KeyRow, StoreError> {
        let missing = || StoreError::NotFound {
            what: "key",
            id: id.to_string(),
        };
        let select =
            format!("SELECT {KEY} FROM keys k JOIN wallets w ON w.n = k.wallet WHERE k.id = ?1");
        let stored = self
            .connection
            .prepare_cached(&select)?
            .query_row([id], key_row)
            .optional()?;
        let mut row = stored.ok_or_else(missing)?;
        let rows = self.rows_of(id)?.ok_or_else(missing)?;
        let (n, mut key) = (rows.key.n, rows.key.key);
        set(&mut key);
        check_limits(&KeyLimits {
            limit: key.limit,
            ..KeyLimits::default()
        })?;
        row.name = name.unwrap_or(row.name);
        // What the batch writes of a key are its counters; what people set is written here.
        let update = "UPDATE keys SET name = ?2, enabled = ?3, expires_at = ?4, spend_limit = ?5, rpm_limit = ?6,
                      tpm_limit = ?7, concurrency_limit = ?8 WHERE n = ?1";
        self.connection.prepare_cached(update)?.execute(params![
            n,
            row.name,
            key.enabled,
            key.expires_at.map(UnixMs::get),
            key.limit.map(Micro::get),
            key.rpm_limit,
            key.tpm_limit,
            key.concurrency_limit,
        ])?;
        self.pending.wrote = true;
        if let Some(rows) = self.rows_of(id)? {
            rows.key.key = key;
        }
        Ok(KeyRow { key, ..row })
    }

    pub(super) fn price_version(
        &mut self,
        model: &str,
        card: &str,
        now: UnixMs,
    ) -> Result<PriceVersion, StoreError> {
        let select = "SELECT id FROM price_versions WHERE model = ?1 AND card = ?2";
        let known = self
            .connection
            .prepare_cached(select)?
            .query_row([model, card], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok(PriceVersion(id));
        }
        let insert = "INSERT INTO price_versions (model, card, created_at) VALUES (?1, ?2, ?3)";
        self.connection
            .prepare_cached(insert)?
            .execute(params![model, card, now.get()])?;
        self.pending.wrote = true;
        Ok(PriceVersion(self.connection.last_insert_rowid()))
    }
}

fn credit_posting(
    wallet: i64,
    row: &mut CachedWallet,
    kind: EntryKind,
    delta: Delta,
    note: Option<Box<str>>,
    at: UnixMs,
) -> Posting {
    let seq = row.next_entry();
    Posting {
        wallet,
        seq,
        kind,
        charge: Micro::ZERO,
        delta,
        note,
        what: What::Credit { at },
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), StoreError> {
    if name.trim().is_empty()
        || name.chars().count() > TEXT_CHARS_MAX
        || name.chars().any(char::is_control)
    {
        return Err(StoreError::Invalid(format!(
            "a {what}'s name has 1 to {TEXT_CHARS_MAX} printable characters"
        )));
    }
    Ok(())
}

fn check_limits(limits: &KeyLimits) -> Result<(), StoreError> {
    if limits.limit.is_some_and(Micro::is_negative) {
        return Err(StoreError::Invalid(
            "a key's limit is not below zero".to_owned(),
        ));
    }
    Ok(())
}

fn overflow(_: ledger::Overflow) -> StoreError {
    StoreError::Overflow
}
