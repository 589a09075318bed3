//! Progress and reports of transfers.

use crate::chain::WalletHead;
use crate::verify::VerifyReport;

/// How far a transfer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current step: the name of a table or file, or `verify`.
    pub step: &'static str,
    /// How many rows of all tables have been copied, or pages of a file.
    pub done: u64,
    /// The total of them.
    pub total: u64,
}

/// What a transfer has copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferReport {
    /// The rows of each table.
    pub tables: Vec<(&'static str, u64)>,
    /// Whether an earlier attempt had copied some of them.
    pub resumed: bool,
    /// Whether everything had been copied and verified before.
    pub already_done: bool,
    pub totals: TransferTotals,
    /// The head of every wallet, equal in source and destination.
    pub heads: Vec<WalletHead>,
    /// Calls that were open at the source and whose outcome is unknown. They were closed as abandoned, at no charge.
    pub abandoned: u64,
}

impl TransferReport {
    /// The rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|(_, rows)| rows).sum()
    }
}

/// What a backup has copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// The size of all files.
    pub bytes: u64,
    pub media_files: u64,
    /// The rows of all tables.
    pub rows: u64,
    pub totals: TransferTotals,
    /// The verification of the copy.
    pub verified: VerifyReport,
}

/// The sums over all wallets in micro-credits, equal in source and destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferTotals {
    pub wallets: u64,
    pub keys: u64,
    pub entries: u64,
    pub balance: i128,
    pub gift_balance: i128,
    pub credit_used: i128,
    pub charged: i128,
}
