//! What a verification reads, and what it adds up for each wallet and key.

use ledger::{Key, Wallet};

/// A wallet as stored.
#[derive(Debug)]
pub(crate) struct WalletFound {
    /// Its number, by which holds and entries name it.
    pub(crate) n: i64,
    pub(crate) id: String,
    pub(crate) wallet: Wallet,
    pub(crate) entries: i64,
    pub(crate) holds_opened: i64,
}

/// A key as stored.
#[derive(Debug)]
pub(crate) struct KeyFound {
    pub(crate) n: i64,
    pub(crate) id: String,
    pub(crate) wallet: i64,
    pub(crate) key: Key,
}

/// An open hold as stored.
#[derive(Debug)]
pub(crate) struct HoldFound {
    pub(crate) id: i64,
    pub(crate) wallet: i64,
    pub(crate) key: i64,
    pub(crate) amount: i64,
    pub(crate) exposure: i64,
    pub(crate) counts: bool,
    /// Whether it belongs to an unfinished task, and so to no node.
    pub(crate) of_task: bool,
    pub(crate) booked: i64,
}

/// An entry as stored.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) wallet: i64,
    pub(crate) seq: i64,
    pub(crate) kind: String,
    pub(crate) closes: Option<i64>,
    pub(crate) key: Option<i64>,
    pub(crate) held: Option<i64>,
    pub(crate) charge: i64,
    pub(crate) balance: i64,
    pub(crate) gift_balance: i64,
    pub(crate) credit_used: i64,
    pub(crate) meter: Option<String>,
    pub(crate) price_version: Option<i64>,
    pub(crate) basis: Option<String>,
    pub(crate) part_of: Option<i64>,
    pub(crate) booked: i64,
}

/// A wallet, and what its holds and entries add up to.
#[derive(Debug)]
pub(super) struct WalletSums {
    pub(super) stored: WalletFound,
    pub(super) frozen: i128,
    pub(super) exposed: i128,
    pub(super) open: i64,
    pub(super) closed: i64,
    pub(super) last_entry: i64,
    pub(super) balance: i128,
    pub(super) gift_balance: i128,
    pub(super) credit_used: i128,
}

/// A key, and what its holds and entries add up to.
#[derive(Debug)]
pub(super) struct KeySums {
    pub(super) stored: KeyFound,
    pub(super) frozen: i128,
    pub(super) counting: i64,
    pub(super) usage: i128,
}

impl WalletSums {
    pub(super) fn of(stored: WalletFound) -> Self {
        Self {
            stored,
            frozen: 0,
            exposed: 0,
            open: 0,
            closed: 0,
            last_entry: 0,
            balance: 0,
            gift_balance: 0,
            credit_used: 0,
        }
    }
}

impl KeySums {
    pub(super) fn of(stored: KeyFound) -> Self {
        Self {
            stored,
            frozen: 0,
            counting: 0,
            usage: 0,
        }
    }
}
