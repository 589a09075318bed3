//! The names of wallets and keys, for lists and searches.

use std::collections::HashMap;

use super::ids::{KeyId, WalletId};

/// The names of some wallets and keys. A key may have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountNames {
    pub wallets: HashMap<WalletId, String>,
    pub keys: HashMap<KeyId, String>,
}

/// Wallets and keys whose names or ids match a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundAccounts {
    /// Ids and names.
    pub wallets: Vec<(WalletId, String)>,
    pub keys: Vec<FoundKey>,
}

/// A key that matches a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundKey {
    pub id: KeyId,
    pub wallet: WalletId,
    pub name: Option<String>,
    /// The beginning of its secret.
    pub prefix: String,
}
