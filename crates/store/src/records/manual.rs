//! Entries that people make, and changes of what they set of a wallet.

use ledger::{ManualKind, Micro, WalletStatus};

use super::accounts::WalletRow;

/// Credits that somebody moves (`docs/decisions/035`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    pub kind: ManualKind,
    /// Above zero. Only an adjustment may be negative.
    pub amount: Micro,
    /// Unique among the wallet's entries. The same reference with the same kind and amount returns the entry that
    /// exists.
    pub reference: Option<String>,
    /// The top-up that a refund takes back: its reference, or the number of its entry.
    pub refund_of: Option<String>,
    /// The reason, for people.
    pub note: String,
}

/// An entry that was booked now or before.
#[derive(Debug, Clone)]
pub struct BookedEntry {
    /// The wallet now.
    pub wallet: WalletRow,
    /// The number of the entry.
    pub seq: i64,
    /// `false` if the reference was known, and nothing was booked.
    pub is_new: bool,
}

/// What people set of a wallet. `None` keeps a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalletSettings {
    pub name: Option<String>,
    pub credit_limit: Option<Micro>,
    pub status: Option<WalletStatus>,
    /// The balance below which an alert tells of the wallet. The inner `None` removes it.
    pub alert_below: Option<Option<Micro>>,
}

/// A wallet after a change.
#[derive(Debug)]
pub(crate) struct ChangedWallet {
    pub(crate) row: WalletRow,
    /// The entry that was booked last or found, and whether it is new.
    pub(crate) entry: Option<(i64, bool)>,
}

impl ChangedWallet {
    /// A wallet that has everything already that was asked for. Nothing is written.
    pub(crate) fn unchanged(row: WalletRow) -> Self {
        Self { row, entry: None }
    }
}
