//! Checks imported accounts, and decides on their first entries.

use ledger::{Delta, ManualKind, Micro, UnixMs, Wallet, WalletStatus};

use super::changes::new_key;
use super::manual::{ManualDecision, ManualFacts};
use super::manual_entry::ManualEntry;
use super::wallet_changes::{WalletOpening, checked_wallet_name, overflow};
use crate::error::StoreError;
use crate::records::accounts::{KeyRow, WalletRow};
use crate::records::entries::EntryKind;
use crate::records::import::{ImportedKey, ImportedWallet};
use crate::records::manual::NewEntry;

impl ImportedWallet {
    /// Checks the wallet and computes its first entries. The balance is an adjustment, because it was not paid to us.
    pub(crate) fn opening(&self) -> Result<WalletOpening, StoreError> {
        checked_wallet_name(&self.name)?;
        let mut wallet = Wallet::default();
        let mut entries = Vec::new();
        if self.balance != Micro::ZERO {
            // Debt is taken from a temporary credit line of the same size. The final credit line is set below.
            if self.balance.is_negative() {
                let debt = self.balance.get().checked_neg().map(Micro::new);
                let debt = debt.ok_or(StoreError::Overflow)?;
                wallet.set_credit_limit(debt).map_err(overflow)?;
            }
            let entry = NewEntry {
                kind: ManualKind::Adjustment,
                amount: self.balance,
                reference: Some(self.reference.clone()),
                refund_of: None,
                note: self.note.clone(),
            };
            entry.check()?;
            match entry.decide(&mut wallet, &ManualFacts::default())? {
                ManualDecision::Post(posted) => entries.push(posted),
                ManualDecision::Exists(_) => return Err(StoreError::Unavailable),
            }
        }
        wallet
            .set_credit_limit(self.credit_limit)
            .map_err(overflow)?;
        if self.credit_limit != Micro::ZERO {
            let note = format!("import: {} -> {}", Micro::ZERO, self.credit_limit);
            entries.push(ManualEntry::set(
                EntryKind::CreditLimit,
                Delta::default(),
                note,
            ));
        }
        if self.status != WalletStatus::Active {
            let note = format!("{} -> {}", wallet.status.as_str(), self.status.as_str());
            wallet.status = self.status;
            entries.push(ManualEntry::set(EntryKind::Status, Delta::default(), note));
        }
        Ok(WalletOpening { wallet, entries })
    }

    pub(crate) fn row(&self, opening: &WalletOpening, now: UnixMs) -> WalletRow {
        WalletRow {
            id: self.id,
            name: self.name.clone(),
            wallet: opening.wallet,
            alert_below: None,
            created_at: now,
        }
    }
}

impl ImportedKey {
    /// Checks the key and composes its row.
    pub(crate) fn row(&self, wallet_name: String, now: UnixMs) -> Result<KeyRow, StoreError> {
        let mut row = new_key(self.id, self.new.clone(), wallet_name, now)?;
        row.key.enabled = self.is_enabled;
        row.old_secret_until = self.second_secret.map(|(_, until)| until);
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::ids::WalletId;

    fn wallet(balance: i64, credit_limit: i64) -> ImportedWallet {
        ImportedWallet {
            id: WalletId::derived("a"),
            name: "a".to_owned(),
            status: WalletStatus::Active,
            balance: Micro::new(balance),
            credit_limit: Micro::new(credit_limit),
            reference: "import:x:users:1".to_owned(),
            note: String::new(),
        }
    }

    #[test]
    fn a_balance_is_carried_whatever_its_sign() {
        for (balance, limit, paid, owed, entries) in [
            (0, 0, 0, 0, 0),
            (7, 0, 7, 0, 1),
            (-7, 0, 0, 7, 1),
            (-7, 3, 0, 7, 2),
            (7, 3, 7, 0, 2),
            (i64::MIN + 1, 0, 0, i64::MAX, 1),
        ] {
            let opening = wallet(balance, limit).opening().unwrap();
            let made = opening.wallet;
            let found = (made.balance.get(), made.credit_used.get());
            assert_eq!(found, (paid, owed), "{balance}");
            assert_eq!(made.credit_limit.get(), limit, "{balance}");
            assert_eq!(opening.entries.len(), entries, "{balance}");
        }
        assert!(wallet(i64::MIN, 0).opening().is_err());
        assert!(wallet(0, -1).opening().is_err());
    }

    #[test]
    fn a_wallet_that_was_off_stays_off() {
        let off = ImportedWallet {
            status: WalletStatus::Disabled,
            ..wallet(0, 0)
        };
        let opening = off.opening().unwrap();
        assert_eq!(opening.wallet.status, WalletStatus::Disabled);
        assert_eq!(opening.entries.len(), 1);
    }
}
