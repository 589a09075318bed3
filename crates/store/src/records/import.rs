//! Accounts to import from another gateway. Their ids are derived from their identifiers in that gateway, so that a
//! repeated import finds them.

use std::collections::{HashMap, HashSet};

use ledger::{Micro, UnixMs, WalletStatus};

use super::accounts::NewKey;
use super::ids::{Digest, KeyId, WalletId};

/// Wallets and keys to create together in one transaction. A key may belong to a wallet of the same batch.
#[derive(Debug, Clone, Default)]
pub struct ImportBatch {
    pub wallets: Vec<ImportedWallet>,
    pub keys: Vec<ImportedKey>,
}

/// A wallet of another gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedWallet {
    pub id: WalletId,
    /// Unique among wallets.
    pub name: String,
    pub status: WalletStatus,
    /// A negative balance is debt, which is booked regardless of the credit line.
    pub balance: Micro,
    pub credit_limit: Micro,
    /// The reference of the entry that books the balance.
    pub reference: String,
    /// The origin of the balance, for people.
    pub note: String,
}

/// A key of another gateway.
#[derive(Debug, Clone)]
pub struct ImportedKey {
    pub id: KeyId,
    pub new: NewKey,
    pub is_enabled: bool,
    /// The digest of a second secret that is accepted too, and when it stops working.
    pub second_secret: Option<(Digest, UnixMs)>,
}

/// The ids and names of a batch, to compare it with the store.
#[derive(Debug, Clone, Default)]
pub struct ImportQuery {
    /// Ids, each with the reference of its balance entry.
    pub wallets: Vec<(WalletId, String)>,
    pub names: Vec<String>,
    pub keys: Vec<KeyId>,
    pub digests: Vec<Digest>,
}

/// The parts of a batch that the store already contains.
#[derive(Debug, Clone, Default)]
pub struct ImportKnown {
    /// The wallets that exist, each with the balance that an import has booked. `None` if there is no such entry.
    pub wallets: HashMap<WalletId, Option<Micro>>,
    /// The names that exist, and their wallets.
    pub names: HashMap<String, WalletId>,
    pub keys: HashSet<KeyId>,
    /// The digests that exist, and their keys.
    pub digests: HashMap<Digest, KeyId>,
}

impl ImportBatch {
    /// A wallet that the batch creates or adds a key to.
    pub(crate) fn first_wallet(&self) -> Option<WalletId> {
        let created = self.wallets.first().map(|wallet| wallet.id);
        created.or_else(|| self.keys.first().map(|key| key.new.wallet))
    }
}
