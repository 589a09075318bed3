//! The rows that a verification reads, and the sums for each wallet and key.

use std::collections::HashMap;

use ledger::{Key, Micro, Wallet, WalletStatus};

use crate::chain::{Head, WalletHead};
use crate::records::balance_point::BalancePoint;
use crate::records::ids::{KeyId, WalletId};

/// A wallet as stored.
#[derive(Debug)]
pub(crate) struct WalletFound {
    /// Its number, which holds and entries refer to.
    pub(crate) n: i64,
    pub(crate) id: WalletId,
    pub(crate) wallet: Wallet,
    pub(crate) entries: i64,
    pub(crate) holds_opened: i64,
    /// The latest time of any of its entries, and the sum of their charges.
    pub(crate) posted_at: i64,
    pub(crate) charged: i64,
    /// `None` if the stored value is not a head.
    pub(crate) head: Option<Head>,
}

/// A key as stored.
#[derive(Debug)]
pub(crate) struct KeyFound {
    pub(crate) n: i64,
    pub(crate) id: KeyId,
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
    pub(crate) counts_in_flight: bool,
    /// Whether it belongs to an open task, and so not to a node.
    pub(crate) of_task: bool,
    pub(crate) booked: i64,
    pub(crate) cost_booked: i64,
}

/// A wallet, and the sums of its holds and entries.
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
    /// The state of the wallet after the entries so far.
    pub(super) point: BalancePoint,
    /// The amount of each top-up that is not refunded yet.
    pub(super) top_ups: HashMap<i64, i64>,
    /// The credit limit and status that the last entries set.
    pub(super) credit_limit: Micro,
    pub(super) status: WalletStatus,
    /// The head that an earlier verification noted.
    pub(super) noted: Option<WalletHead>,
}

/// A key, and the sums of its holds and entries.
#[derive(Debug)]
pub(super) struct KeySums {
    pub(super) stored: KeyFound,
    pub(super) frozen: i128,
    pub(super) counting: i64,
    pub(super) usage: i128,
    /// The sum of its charges before the current period of its window.
    pub(super) usage_before: i128,
}

impl WalletSums {
    pub(super) fn of(stored: WalletFound, noted: Option<WalletHead>) -> Self {
        Self {
            stored,
            noted,
            frozen: 0,
            exposed: 0,
            open: 0,
            closed: 0,
            last_entry: 0,
            point: BalancePoint::default(),
            top_ups: HashMap::new(),
            balance: 0,
            gift_balance: 0,
            credit_used: 0,
            credit_limit: Micro::ZERO,
            status: WalletStatus::default(),
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
            usage_before: 0,
        }
    }
}
