//! Administrative changes of wallets and keys: their checks and their effect on the rows.

use ledger::{Delta, Key, Micro, UnixMs, Wallet, Window};

use super::pending::{Origin, Posting, Source};
use super::rows::BookWallet;
use super::state::Books;
use crate::chain::Head;
use crate::error::StoreError;
use crate::queue::command::{Credit, KeyEdit, WalletChange};
use crate::records::accounts::{KeyChange, KeyLimits, KeyRow, KeyWindow, NewKey, NewWallet};
use crate::records::entries::EntryKind;
use crate::records::ids::{KeyId, WalletId};
use crate::records::tags::checked_tags;

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

/// The row of a new key, checked.
pub(crate) fn new_key(
    id: KeyId,
    new: NewKey,
    wallet_name: String,
    now: UnixMs,
) -> Result<KeyRow, StoreError> {
    if let Some(name) = &new.name {
        checked_name("key", name)?;
    }
    let KeyLimits {
        limit,
        window,
        models,
        rpm,
        tpm,
        concurrency,
        expires_at,
    } = new.limits;
    checked_limit(limit)?;
    checked_limit(window.as_ref().map(|window| window.amount))?;
    let key = Key {
        enabled: true,
        expires_at,
        limit,
        window: window.as_ref().map(|window| Window::new(window.amount)),
        rpm_limit: rpm,
        tpm_limit: tpm,
        concurrency_limit: concurrency,
        ..Key::default()
    };
    Ok(KeyRow {
        id,
        wallet: new.wallet,
        wallet_name,
        name: new.name,
        shown_prefix: new.shown_prefix,
        key,
        calendar: window.map(|window| window.calendar),
        models,
        tags: checked_tags(new.tags)?,
        last_used_at: None,
        old_secret_until: None,
        created_at: now,
    })
}

/// Computes the row of a key after a change of its settings. `now` is the key as the ledger knows it.
pub(crate) fn edited(before: &KeyRow, now: Key, edit: KeyEdit) -> Result<KeyRow, StoreError> {
    let mut row = KeyRow {
        key: now,
        ..before.clone()
    };
    match edit {
        KeyEdit::Enabled(enabled) => row.key.enabled = enabled,
        KeyEdit::Limits(change) => change_limits(&mut row, change)?,
        KeyEdit::Rotate(rotation) => {
            row.shown_prefix = rotation.shown_prefix;
            row.old_secret_until = rotation.old_secret_until;
        }
    }
    Ok(row)
}

fn change_limits(row: &mut KeyRow, change: KeyChange) -> Result<(), StoreError> {
    if let Some(Some(name)) = &change.name {
        checked_name("key", name)?;
    }
    let key = &mut row.key;
    key.enabled = change.enabled.unwrap_or(key.enabled);
    key.limit = change.limit.unwrap_or(key.limit);
    key.rpm_limit = change.rpm.unwrap_or(key.rpm_limit);
    key.tpm_limit = change.tpm.unwrap_or(key.tpm_limit);
    key.concurrency_limit = change.concurrency.unwrap_or(key.concurrency_limit);
    key.expires_at = change.expires_at.unwrap_or(key.expires_at);
    if let Some(window) = change.window {
        set_window(row, window);
    }
    row.name = change.name.unwrap_or_else(|| row.name.take());
    row.models = change.models.unwrap_or_else(|| row.models.take());
    if let Some(tags) = change.tags {
        row.tags = checked_tags(tags)?;
    }
    checked_limit(row.key.limit)?;
    checked_limit(row.key.window.map(|window| window.amount))
}

/// Sets or removes the window of a key. A new amount applies to the current period. Other periods begin with the
/// next decision, and nothing that was charged before counts in them.
fn set_window(row: &mut KeyRow, window: Option<KeyWindow>) {
    let Some(KeyWindow { amount, calendar }) = window else {
        (row.key.window, row.calendar) = (None, None);
        return;
    };
    let same = row.calendar.as_ref() == Some(&calendar);
    let current = row.key.window.filter(|_| same);
    row.key.window = Some(Window {
        amount,
        ..current.unwrap_or(Window::new(amount))
    });
    row.calendar = Some(calendar);
}

pub(super) fn checked_name(what: &'static str, name: &str) -> Result<(), StoreError> {
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
