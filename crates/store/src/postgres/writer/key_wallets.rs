//! Caches the wallet of each key, which never changes.

use parking_lot::Mutex;

use crate::cache::GenerationalCache;
use crate::records::ids::{KeyId, WalletId};

const KEYS_MAX: usize = 65_536;

#[derive(Debug)]
pub(crate) struct KeyWallets {
    wallets: Mutex<GenerationalCache<KeyId, WalletId>>,
}

impl KeyWallets {
    pub(crate) fn new() -> Self {
        Self {
            wallets: Mutex::new(GenerationalCache::new(KEYS_MAX)),
        }
    }

    pub(crate) fn insert(&self, key: KeyId, wallet: WalletId) {
        let mut wallets = self.wallets.lock();
        wallets.insert(key, wallet);
        wallets.age();
    }

    pub(crate) fn wallet_of(&self, key: KeyId) -> Option<WalletId> {
        self.wallets.lock().get_mut(key).copied()
    }
}
