//! Manual entries, and changes to the settings of a wallet.

use ledger::{ManualKind, Micro, WalletStatus};

use super::accounts::WalletRow;

/// A manual movement of credits (`docs/decisions/035`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    pub kind: ManualKind,
    /// A positive amount. Only an adjustment may be negative.
    pub amount: Micro,
    /// Unique among the wallet's entries. A repeated reference with the same kind and amount returns the existing
    /// entry.
    pub reference: Option<String>,
    /// The top-up that is refunded: its reference, or the number of its entry.
    pub refund_of: Option<String>,
    /// The reason, for people.
    pub note: String,
}

/// A manual entry that was booked now, or earlier under the same reference.
#[derive(Debug, Clone)]
pub struct BookedEntry {
    /// The current state of the wallet.
    pub wallet: WalletRow,
    /// The number of the entry.
    pub seq: i64,
    /// `false` if the reference existed and nothing was booked.
    pub is_new: bool,
}

/// The settings of a wallet. `None` keeps a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalletSettings {
    pub name: Option<String>,
    pub credit_limit: Option<Micro>,
    pub status: Option<WalletStatus>,
    /// The balance below which an alert for the wallet begins. The inner `None` removes it.
    pub alert_below: Option<Option<Micro>>,
}

#[derive(Debug)]
pub(crate) struct ChangedWallet {
    pub(crate) row: WalletRow,
    /// The entry that was booked or found, and whether it is new.
    pub(crate) entry: Option<(i64, bool)>,
}

impl ChangedWallet {
    /// A wallet that already has the requested values. Nothing is written.
    pub(crate) fn unchanged(row: WalletRow) -> Self {
        Self { row, entry: None }
    }
}
