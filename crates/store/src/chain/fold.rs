//! Computes the chain heads of all wallets from their entries.

use std::collections::HashMap;

use super::head::{Head, ReferencedValues};
use crate::records::columns::EntryColumns;
use crate::records::cost::CostVersion;
use crate::records::ids::{KeyId, PriceVersion, WalletId};

/// Chains under construction. The caller first adds wallets, keys, price and cost versions, then the entries, ordered
/// by their numbers within each wallet.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    heads: HashMap<i64, Head>,
    keys: HashMap<i64, KeyId>,
    cards: HashMap<i64, [u8; 32]>,
    cost_cards: HashMap<i64, [u8; 32]>,
}

impl Chains {
    pub(crate) fn wallet(&mut self, n: i64, id: WalletId) {
        self.heads.insert(n, Head::of_wallet(id));
    }

    pub(crate) fn key(&mut self, n: i64, id: KeyId) {
        self.keys.insert(n, id);
    }

    pub(crate) fn price_version(&mut self, version: PriceVersion) {
        self.cards.insert(version.get(), *version.digest());
    }

    pub(crate) fn cost_version(&mut self, version: CostVersion) {
        let number = version.number().get();
        self.cost_cards.insert(number, *version.digest());
    }

    /// Adds an entry to the chain of its wallet. An entry of an unknown wallet belongs to no chain.
    pub(crate) fn entry(&mut self, entry: &EntryColumns<'_>) {
        let Some(head) = self.heads.get_mut(&entry.wallet) else {
            return;
        };
        let named = ReferencedValues {
            key: entry.key.and_then(|key| self.keys.get(&key).copied()),
            card: entry
                .price_version
                .and_then(|number| self.cards.get(&number)),
            cost_card: entry
                .cost_version
                .and_then(|number| self.cost_cards.get(&number)),
        };
        *head = head.after(entry, named);
    }

    /// The head of a wallet after the entries so far.
    pub(crate) fn head(&self, wallet: i64) -> Option<Head> {
        self.heads.get(&wallet).copied()
    }

    /// All heads, with the row numbers of their wallets.
    pub(crate) fn into_heads(self) -> impl Iterator<Item = (i64, Head)> {
        self.heads.into_iter()
    }
}
