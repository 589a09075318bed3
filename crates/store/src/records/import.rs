//! Accounts of another gateway, which are created here with ids that follow from their names there.

use std::collections::{HashMap, HashSet};

use ledger::{Micro, UnixMs, WalletStatus};

use super::accounts::NewKey;
use super::ids::{Digest, KeyId, WalletId};

/// Wallets and keys to create, all of them or none. A key may belong to a wallet of the same batch.
#[derive(Debug, Clone, Default)]
pub struct ImportBatch {
    pub wallets: Vec<ImportedWallet>,
    pub keys: Vec<ImportedKey>,
}

/// A wallet as it was elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedWallet {
    pub id: WalletId,
    /// Unique among wallets.
    pub name: String,
    pub status: WalletStatus,
    /// Below zero is debt, which is booked whatever the credit line.
    pub balance: Micro,
    pub credit_limit: Micro,
    /// The reference of the entry that books the balance.
    pub reference: String,
    /// Where it comes from, for people.
    pub note: String,
}

/// A key as it was elsewhere.
#[derive(Debug, Clone)]
pub struct ImportedKey {
    pub id: KeyId,
    pub new: NewKey,
    pub is_enabled: bool,
    /// The digest of a second text that is accepted as its secret, and until when.
    pub second_secret: Option<(Digest, UnixMs)>,
}

/// What a comparison with the store needs of a batch.
#[derive(Debug, Clone, Default)]
pub struct ImportQuery {
    /// Ids and the references of their balances.
    pub wallets: Vec<(WalletId, String)>,
    pub names: Vec<String>,
    pub keys: Vec<KeyId>,
    pub digests: Vec<Digest>,
}

/// What the store has of a batch.
#[derive(Debug, Clone, Default)]
pub struct ImportKnown {
    /// The wallets that exist, and the balances that an import has booked for them. `None` if there is no such entry.
    pub wallets: HashMap<WalletId, Option<Micro>>,
    /// The names that are taken, and by whom.
    pub names: HashMap<String, WalletId>,
    pub keys: HashSet<KeyId>,
    /// The digests that are known, and of which keys.
    pub digests: HashMap<Digest, KeyId>,
}

impl ImportBatch {
    /// Any wallet that the batch concerns.
    pub(crate) fn first_wallet(&self) -> Option<WalletId> {
        let created = self.wallets.first().map(|wallet| wallet.id);
        created.or_else(|| self.keys.first().map(|key| key.new.wallet))
    }
}
