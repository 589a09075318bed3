//! Operations that change a wallet's credits and settings.

use ledger::{ManualKind, Micro, WalletStatus};

use super::Store;
use crate::clock;
use crate::error::StoreError;
use crate::queue::command::{Change, WalletChange};
use crate::records::accounts::WalletRow;
use crate::records::audit::Actor;
use crate::records::ids::WalletId;
use crate::records::manual::{BookedEntry, ChangedWallet, NewEntry, WalletSettings};

/// A change is durable when its method returns, together with the audit row that names the actor.
impl Store {
    /// Moves credits of a wallet. If an entry with the same reference, kind and amount exists, returns that entry and
    /// books nothing. So a request whose answer was lost can be repeated.
    pub async fn book_entry(
        &self,
        wallet: WalletId,
        new: NewEntry,
        actor: &Actor,
    ) -> Result<BookedEntry, StoreError> {
        let change = WalletChange::Manual(new);
        let ChangedWallet { row, entry } = self.change_wallet(wallet, change, actor).await?;
        let (seq, is_new) = entry.unwrap_or_default();
        Ok(BookedEntry {
            wallet: row,
            seq,
            is_new,
        })
    }

    /// Adds paid credits, which repay the credit line first.
    pub async fn top_up(
        &self,
        wallet: WalletId,
        amount: Micro,
        note: &str,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let new = without_reference(ManualKind::TopUp, amount, note);
        Ok(self.book_entry(wallet, new, actor).await?.wallet)
    }

    /// Adds gift credits, which never repay debt.
    pub async fn gift(
        &self,
        wallet: WalletId,
        amount: Micro,
        note: &str,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let new = without_reference(ManualKind::Gift, amount, note);
        Ok(self.book_entry(wallet, new, actor).await?.wallet)
    }

    /// Changes the settings of a wallet, all of them or none.
    pub async fn update_wallet(
        &self,
        wallet: WalletId,
        settings: WalletSettings,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let change = WalletChange::Settings(settings);
        Ok(self.change_wallet(wallet, change, actor).await?.row)
    }

    /// Sets the size of the credit line. Debt beyond it remains.
    pub async fn set_credit_limit(
        &self,
        wallet: WalletId,
        limit: Micro,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let settings = WalletSettings {
            credit_limit: Some(limit),
            ..WalletSettings::default()
        };
        self.update_wallet(wallet, settings, actor).await
    }

    /// Enables or disables calls of a wallet. Calls that are already admitted settle as usual.
    pub async fn set_wallet_status(
        &self,
        wallet: WalletId,
        status: WalletStatus,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let settings = WalletSettings {
            status: Some(status),
            ..WalletSettings::default()
        };
        self.update_wallet(wallet, settings, actor).await
    }

    async fn change_wallet(
        &self,
        wallet: WalletId,
        change: WalletChange,
        actor: &Actor,
    ) -> Result<ChangedWallet, StoreError> {
        let now = clock::now();
        let actor = Box::new(actor.clone());
        self.change(|reply| Change::Wallet {
            wallet,
            change,
            now,
            actor,
            reply,
        })
        .await
    }
}

fn without_reference(kind: ManualKind, amount: Micro, note: &str) -> NewEntry {
    NewEntry {
        kind,
        amount,
        reference: None,
        refund_of: None,
        note: note.to_owned(),
    }
}
