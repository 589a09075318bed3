//! Operations on wallets and keys, and the audit log.

use super::Store;
use crate::backend::{Backend, on};
use crate::clock;
use crate::error::StoreError;
use crate::queue::command::{Change, KeyEdit};
use crate::records::accounts::{KeyChange, KeyRotation, KeyRow, NewKey, NewWallet, WalletRow};
use crate::records::audit::{Actor, AuditQuery, AuditRow};
use crate::records::catalog::AuditAction;
use crate::records::ids::{KeyId, WalletId};
use crate::records::key_query::KeyQuery;
use crate::records::names::{AccountNames, FoundAccounts};

/// A change is durable when its method returns, together with the audit row that names the actor.
impl Store {
    /// Creates a wallet. Its initial amounts are booked as entries.
    pub async fn create_wallet(
        &self,
        new: NewWallet,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let id = WalletId::random();
        self.change(|reply| Change::CreateWallet {
            id,
            new,
            now: clock::now(),
            actor: Box::new(actor.clone()),
            reply,
        })
        .await
    }

    /// All wallets, oldest first.
    pub async fn wallets(&self) -> Result<Vec<WalletRow>, StoreError> {
        on!(self, backend => backend.wallets().await)
    }

    /// The wallet with this id or name.
    pub async fn find_wallet(&self, name_or_id: &str) -> Result<Option<WalletRow>, StoreError> {
        on!(self, backend => backend.find_wallet(name_or_id.to_owned()).await)
    }

    /// Creates a key of a wallet.
    pub async fn create_key(&self, new: NewKey, actor: &Actor) -> Result<KeyRow, StoreError> {
        let id = KeyId::random();
        let created = self.change(|reply| Change::CreateKey {
            id,
            new,
            now: clock::now(),
            actor: Box::new(actor.clone()),
            reply,
        });
        Ok(created.await?.at(clock::now()))
    }

    /// The keys of a wallet, or all keys, oldest first.
    pub async fn keys(&self, wallet: Option<WalletId>) -> Result<Vec<KeyRow>, StoreError> {
        let found = on!(self, backend => backend.keys(wallet).await)?;
        Ok(as_of_now(found))
    }

    /// The keys that match a search, newest first.
    pub async fn search_keys(&self, query: KeyQuery) -> Result<Vec<KeyRow>, StoreError> {
        let found = on!(self, backend => backend.search_keys(query).await)?;
        Ok(as_of_now(found))
    }

    /// The key with this id.
    pub async fn find_key(&self, key: &KeyId) -> Result<Option<KeyRow>, StoreError> {
        let found = on!(self, backend => backend.find_key(*key).await)?;
        Ok(found.map(|row| row.at(clock::now())))
    }

    /// Changes the settings of a key, effective at the next admission.
    pub async fn update_key(
        &self,
        key: KeyId,
        change: KeyChange,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        self.change_key(key, KeyEdit::Limits(change), actor).await
    }

    /// Replaces the secret of a key. The previous secret stops working at once or at a set time. Any older secret stops
    /// working at once.
    pub async fn rotate_key(
        &self,
        key: KeyId,
        rotation: KeyRotation,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        self.change_key(key, KeyEdit::Rotate(rotation), actor).await
    }

    /// Enables or disables calls with this key.
    pub async fn set_key_enabled(
        &self,
        key: KeyId,
        enabled: bool,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        self.change_key(key, KeyEdit::Enabled(enabled), actor).await
    }

    async fn change_key(
        &self,
        key: KeyId,
        edit: KeyEdit,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        let now = clock::now();
        let changed = self.change(|reply| Change::Key {
            key,
            edit,
            now,
            actor: Box::new(actor.clone()),
            reply,
        });
        let row = changed.await?;
        self.key_listener.tell(key);
        Ok(row.at(now))
    }

    /// Calls `notify` after each change of a key that is made through this store or a clone of it, before the change
    /// returns. Changes by other processes are not reported.
    pub fn on_key_change(&self, notify: impl Fn(KeyId) + Send + Sync + 'static) {
        self.key_listener.set(notify);
    }

    /// The names of these wallets and keys.
    pub async fn account_names(
        &self,
        wallets: Vec<WalletId>,
        keys: Vec<KeyId>,
    ) -> Result<AccountNames, StoreError> {
        on!(self, backend => backend.account_names(wallets, keys).await)
    }

    /// Wallets and keys whose names contain a text, regardless of case, or whose ids begin with it. A key is also found
    /// by its secret.
    pub async fn find_accounts(&self, text: &str, limit: u32) -> Result<FoundAccounts, StoreError> {
        on!(self, backend => backend.find_accounts(text.to_owned(), limit).await)
    }

    /// Writes an audit row for an action that changes nothing in the store.
    pub async fn note_action(&self, action: AuditAction, actor: &Actor) -> Result<(), StoreError> {
        let (action, actor) = (Box::new(action), Box::new(actor.clone()));
        let noted = self.change(|reply| Change::AuditAction {
            action,
            now: clock::now(),
            actor,
            reply,
        });
        noted.await
    }

    /// Audit rows, newest first.
    pub async fn audit(&self, query: AuditQuery) -> Result<Vec<AuditRow>, StoreError> {
        on!(self, backend => backend.audit(query).await)
    }
}

fn as_of_now(rows: Vec<KeyRow>) -> Vec<KeyRow> {
    let now = clock::now();
    rows.into_iter().map(|row| row.at(now)).collect()
}
