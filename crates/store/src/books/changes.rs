//! Administrative changes of wallets and keys: their checks and their effect on the rows.

use ledger::{Bucket, Delta, Key, Micro, UnixMs, Wallet};

use super::pending::{Origin, Posting, Source};
use super::rows::BookWallet;
use super::state::Books;
use crate::chain::Head;
use crate::error::StoreError;
use crate::queue::command::{Credit, KeyEdit, WalletChange};
use crate::records::accounts::{KeyLimits, NewKey, NewWallet};
use crate::records::entries::EntryKind;
use crate::records::ids::WalletId;

/// The longest name of a wallet or key, and the longest note of an entry.
const TEXT_CHARS_MAX: usize = 200;

/// The entry of an administrative change: its kind, the amounts it moves, and the reason.
type Said = (EntryKind, Delta, Option<Box<str>>);

/// A new wallet, checked, with its first entries.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) wallet: Wallet,
    said: Vec<Said>,
}

impl Opening {
    pub(crate) fn of(new: &NewWallet) -> Result<Self, StoreError> {
        checked_name("wallet", &new.name)?;
        if new.name.starts_with(WalletId::PREFIX) {
            return Err(StoreError::Invalid(
                "a wallet's name does not look like an id".to_owned(),
            ));
        }
        let mut wallet = Wallet::default();
        let mut said = Vec::new();
        let topped = wallet.top_up(new.balance).map_err(overflow)?;
        let gifted = wallet.gift(new.gift).map_err(overflow)?;
        wallet
            .set_credit_limit(new.credit_limit)
            .map_err(overflow)?;
        for (kind, amount, delta) in [
            (EntryKind::TopUp, new.balance, topped),
            (EntryKind::Gift, new.gift, gifted),
            (EntryKind::CreditLimit, new.credit_limit, Delta::default()),
        ] {
            if amount != Micro::ZERO {
                let note = match kind {
                    EntryKind::CreditLimit => format!("opening: {} -> {amount}", Micro::ZERO),
                    _ => "opening".to_owned(),
                };
                said.push((kind, delta, Some(note.into())));
            }
        }
        Ok(Self { wallet, said })
    }
}

impl Books {
    /// Adds a wallet that was just created with the number `n`.
    pub(crate) fn open_wallet(&mut self, n: i64, id: WalletId, opening: Opening, now: UnixMs) {
        let mut row = BookWallet {
            wallet: opening.wallet,
            entries: 0,
            posted_at: UnixMs::new(0),
            charged: Micro::ZERO,
            head: Head::of_wallet(id),
            holds_opened: 0,
            dirty: false,
        };
        self.pending.has_manual = true;
        for said in opening.said {
            row.post(posting(n, said, now), &mut self.pending);
        }
        row.touch(n, &mut self.pending);
        self.wallets.insert(n, row);
    }

    /// Changes the wallet with the number `n` and posts an entry that says why. A change that fails has changed
    /// nothing. `None` if there is no such wallet.
    pub(crate) fn change_wallet(
        &mut self,
        n: i64,
        change: WalletChange,
        now: UnixMs,
    ) -> Option<Result<Wallet, StoreError>> {
        let row = self.wallets.get_mut(n)?;
        let mut wallet = row.wallet;
        let said = match said(&mut wallet, change) {
            Ok(said) => said,
            Err(error) => return Some(Err(error)),
        };
        row.wallet = wallet;
        self.pending.has_manual = true;
        row.touch(n, &mut self.pending);
        row.post(posting(n, said, now), &mut self.pending);
        Some(Ok(wallet))
    }
}

/// Computes a wallet after a change, without changing it.
pub(crate) fn changed(mut wallet: Wallet, change: WalletChange) -> Result<Wallet, StoreError> {
    said(&mut wallet, change).map(|_| wallet)
}

fn said(wallet: &mut Wallet, change: WalletChange) -> Result<Said, StoreError> {
    match change {
        WalletChange::Credit {
            credit,
            amount,
            note,
        } => {
            if amount <= Micro::ZERO {
                return Err(StoreError::Invalid(
                    "the amount must be above zero".to_owned(),
                ));
            }
            let note: Box<str> = note
                .chars()
                .filter(|c| !c.is_control())
                .take(TEXT_CHARS_MAX)
                .collect();
            let note = (!note.is_empty()).then_some(note);
            let (kind, delta) = match credit {
                Credit::TopUp => (EntryKind::TopUp, wallet.top_up(amount)),
                Credit::Gift => (EntryKind::Gift, wallet.gift(amount)),
            };
            Ok((kind, delta.map_err(overflow)?, note))
        }
        WalletChange::CreditLimit(limit) => {
            let note = format!("{} -> {limit}", wallet.credit_limit);
            wallet.set_credit_limit(limit).map_err(overflow)?;
            Ok((EntryKind::CreditLimit, Delta::default(), Some(note.into())))
        }
        WalletChange::Status(status) => {
            let note = format!("{} -> {}", wallet.status.as_str(), status.as_str());
            wallet.status = status;
            Ok((EntryKind::Status, Delta::default(), Some(note.into())))
        }
    }
}

fn posting(wallet: i64, said: Said, at: UnixMs) -> Posting {
    let (kind, delta, note) = said;
    Posting {
        wallet,
        seq: 0,
        kind,
        charge: Micro::ZERO,
        delta,
        note,
        source: Source::Manual {
            at,
            origin: Box::new(Origin::default()),
        },
    }
}

/// Checks a new key.
pub(crate) fn new_key(new: &NewKey) -> Result<Key, StoreError> {
    if let Some(name) = &new.name {
        checked_name("key", name)?;
    }
    let KeyLimits {
        limit,
        rpm,
        tpm,
        concurrency,
        expires_at,
    } = new.limits;
    checked_limit(limit)?;
    Ok(Key {
        enabled: true,
        expires_at,
        limit,
        usage: Micro::ZERO,
        frozen: Micro::ZERO,
        open_holds: 0,
        rpm_limit: rpm,
        tpm_limit: tpm,
        concurrency_limit: concurrency,
        rpm: Bucket::default(),
        tpm: Bucket::default(),
    })
}

/// Computes a key and its name after a change of its settings.
pub(crate) fn edited(
    mut key: Key,
    mut name: Option<String>,
    edit: KeyEdit,
) -> Result<(Key, Option<String>), StoreError> {
    match edit {
        KeyEdit::Enabled(enabled) => key.enabled = enabled,
        KeyEdit::Limits(change) => {
            if let Some(Some(name)) = &change.name {
                checked_name("key", name)?;
            }
            key.limit = change.limit.unwrap_or(key.limit);
            key.rpm_limit = change.rpm.unwrap_or(key.rpm_limit);
            key.tpm_limit = change.tpm.unwrap_or(key.tpm_limit);
            key.concurrency_limit = change.concurrency.unwrap_or(key.concurrency_limit);
            key.expires_at = change.expires_at.unwrap_or(key.expires_at);
            name = change.name.unwrap_or(name);
            checked_limit(key.limit)?;
        }
    }
    Ok((key, name))
}

fn checked_name(what: &'static str, name: &str) -> Result<(), StoreError> {
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

fn checked_limit(limit: Option<Micro>) -> Result<(), StoreError> {
    if limit.is_some_and(Micro::is_negative) {
        return Err(StoreError::Invalid(
            "a key's limit is not below zero".to_owned(),
        ));
    }
    Ok(())
}

fn overflow(_: ledger::Overflow) -> StoreError {
    StoreError::Overflow
}
