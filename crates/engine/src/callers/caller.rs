//! Finds the caller that a secret belongs to, and reads its balance.

use std::time::{Duration, Instant};

use ledger::{Key, Micro, Wallet, WalletStatus};
use protocol::Failure;
use store::{KeyHead, KeyId};

use super::keyring::{KeyLookupError, LastKey};
use super::limits::{Caller, KeyUsage};
use crate::clock;
use crate::engine::Engine;
use crate::failures::try_again_soon;

/// How long a wallet that had credits is not checked again.
const FUNDS_TTL: Duration = Duration::from_secs(1);

impl Engine {
    /// Finds the caller that a secret belongs to.
    pub async fn recognise(&self, secret: &str, last: &LastKey) -> Result<Caller, Failure> {
        let look_up = async |digest| self.store.key_by_digest(&digest).await;
        let found = self.keyring.find(look_up, secret, last).await;
        let (key, share) = found.map_err(|error| match error {
            KeyLookupError::NoSuchKey => Failure::invalid_api_key(),
            KeyLookupError::Unavailable => try_again_soon("Keys cannot be looked up now."),
        })?;
        self.keyring.callers().enter(key, share)
    }

    /// Finds the caller of a key without its secret, for an operator who acts on its behalf.
    pub async fn recognise_key(&self, key: KeyId) -> Result<Caller, Failure> {
        let found = self.store.find_key(&key).await.map_err(|error| {
            tracing::warn!(%error, "a key could not be looked up");
            try_again_soon("Keys cannot be looked up now.")
        })?;
        let row = found.ok_or_else(Failure::invalid_api_key)?;
        if !row.key.enabled || row.key.is_expired(clock::now()) {
            return Err(Failure::invalid_api_key());
        }
        let head = row.head();
        let callers = self.keyring.callers();
        let share = callers.share_of(&head);
        callers.enter(head, share)
    }

    /// The wallet and the key of the caller at one instant, including all charges so far.
    pub async fn balance(&self, key: &KeyHead) -> Result<(Wallet, Key), Failure> {
        let (wallet, key) = self.store.balance(&key.key).await.map_err(|error| {
            tracing::warn!(%error, "a balance could not be read");
            try_again_soon("The balance cannot be read now.")
        })?;
        // The ledger's row is newer than the entry in the key cache.
        if !key.enabled || key.is_expired(clock::now()) {
            return Err(Failure::invalid_api_key());
        }
        Ok((wallet, key))
    }

    /// Refuses a caller whose wallet is disabled or empty, before a large body is read.
    ///
    /// The committed row is enough for most wallets. It may be older than a hold that was just released, so the ledger
    /// writer must confirm that a wallet is empty.
    pub async fn check_funds(&self, caller: &Caller) -> Result<(), Failure> {
        self.check_funds_of(&caller.key, &caller.share).await
    }

    /// Like [`Self::check_funds`], for a key that has a call in flight.
    pub(crate) async fn check_funds_of(
        &self,
        key: &KeyHead,
        share: &KeyUsage,
    ) -> Result<(), Failure> {
        let seen = &share.wallet.funds_seen;
        if seen.lock().is_some_and(|at| at.elapsed() < FUNDS_TTL) {
            return Ok(());
        }
        let row = self.store.find_wallet(&key.wallet.to_string()).await;
        let is_funded = matches!(&row, Ok(Some(row)) if can_spend(&row.wallet).is_ok());
        if !is_funded {
            let (wallet, _) = self.balance(key).await?;
            can_spend(&wallet)?;
        }
        *seen.lock() = Some(Instant::now());
        Ok(())
    }
}

fn can_spend(wallet: &Wallet) -> Result<(), Failure> {
    match wallet.status {
        WalletStatus::Disabled => Err(Failure::wallet_disabled()),
        WalletStatus::Active if wallet.total_available() > Micro::ZERO => Ok(()),
        WalletStatus::Active => Err(Failure::insufficient_quota()),
    }
}
