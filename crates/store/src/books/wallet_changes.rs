//! Checks administrative changes of wallets, and decides on their effect on the rows and their entries.

use ledger::{Delta, Micro, UnixMs, Wallet};

use super::changes::checked_name;
use super::manual::{ManualDecision, ManualFacts};
use super::manual_entry::ManualEntry;
use super::rows::BookWallet;
use super::state::Books;
use crate::chain::Head;
use crate::error::StoreError;
use crate::queue::command::WalletChange;
use crate::records::accounts::NewWallet;
use crate::records::entries::EntryKind;
use crate::records::ids::WalletId;
use crate::records::manual::WalletSettings;

/// A new wallet that was checked, with its first entries.
#[derive(Debug)]
pub(crate) struct WalletOpening {
    pub(crate) wallet: Wallet,
    pub(super) entries: Vec<ManualEntry>,
}

impl WalletOpening {
    pub(crate) fn of(new: &NewWallet) -> Result<Self, StoreError> {
        checked_wallet_name(&new.name)?;
        let mut wallet = Wallet::default();
        let mut entries = Vec::new();
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
                entries.push(ManualEntry::set(kind, delta, note));
            }
        }
        Ok(Self { wallet, entries })
    }
}

/// A change of a wallet that is decided but not yet applied.
#[derive(Debug)]
pub(crate) struct PreparedChange {
    /// The wallet after the change.
    pub(crate) wallet: Wallet,
    entries: Vec<ManualEntry>,
}

#[derive(Debug)]
pub(crate) enum WalletDecision {
    Change(PreparedChange),
    /// The same entry was booked before, with this number.
    Exists(i64),
}

impl WalletChange {
    /// Checks everything that does not depend on stored rows.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self {
            Self::Manual(new) => new.check(),
            Self::Settings(WalletSettings {
                name: Some(name), ..
            }) => checked_wallet_name(name),
            Self::Settings(_) => Ok(()),
        }
    }

    /// Decides on a change without applying it.
    pub(crate) fn prepare(
        &self,
        mut wallet: Wallet,
        facts: &ManualFacts,
    ) -> Result<WalletDecision, StoreError> {
        let mut entries = Vec::new();
        match self {
            Self::Manual(new) => match new.decide(&mut wallet, facts)? {
                ManualDecision::Post(entry) => entries.push(entry),
                ManualDecision::Exists(seq) => return Ok(WalletDecision::Exists(seq)),
            },
            Self::Settings(settings) => {
                if let Some(limit) = settings.credit_limit
                    && limit != wallet.credit_limit
                {
                    let note = format!("{} -> {limit}", wallet.credit_limit);
                    wallet.set_credit_limit(limit).map_err(overflow)?;
                    entries.push(ManualEntry::set(
                        EntryKind::CreditLimit,
                        Delta::default(),
                        note,
                    ));
                }
                if let Some(status) = settings.status
                    && status != wallet.status
                {
                    let note = format!("{} -> {}", wallet.status.as_str(), status.as_str());
                    wallet.status = status;
                    entries.push(ManualEntry::set(EntryKind::Status, Delta::default(), note));
                }
            }
        }
        Ok(WalletDecision::Change(PreparedChange { wallet, entries }))
    }
}

impl Books {
    /// Adds a wallet that was just created with the number `n`.
    pub(crate) fn open_wallet(
        &mut self,
        n: i64,
        id: WalletId,
        opening: WalletOpening,
        now: UnixMs,
        actor: &str,
    ) {
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
        for entry in opening.entries {
            row.post(entry.posting(n, now, actor), &mut self.pending);
        }
        row.touch(n, &mut self.pending);
        self.wallets.insert(n, row);
    }

    /// Applies a change that was prepared on the current state of the wallet with the row number `n`. Returns the
    /// number of its last entry, or `None` if there is no such wallet.
    pub(crate) fn make_change(
        &mut self,
        n: i64,
        change: PreparedChange,
        now: UnixMs,
        actor: &str,
    ) -> Option<i64> {
        let row = self.wallets.get_mut(n)?;
        row.wallet = change.wallet;
        self.pending.has_manual = true;
        row.touch(n, &mut self.pending);
        for entry in change.entries {
            row.post(entry.posting(n, now, actor), &mut self.pending);
        }
        Some(row.entries)
    }
}

pub(super) fn checked_wallet_name(name: &str) -> Result<(), StoreError> {
    checked_name("wallet", name)?;
    if name.starts_with(WalletId::PREFIX) {
        return Err(StoreError::Invalid(
            "a wallet's name does not look like an id".to_owned(),
        ));
    }
    Ok(())
}

pub(super) fn overflow(_: ledger::Overflow) -> StoreError {
    StoreError::Overflow
}
