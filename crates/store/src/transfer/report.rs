//! Progress and reports of transfers.

use crate::chain::WalletHead;
use crate::verify::VerifyReport;

/// The progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current step: the name of a table or file, `verify` or `media`.
    pub step: &'static str,
    /// The number of rows of all tables, or pages of a file, that have been copied.
    pub done: u64,
    /// The total number of rows or pages.
    pub total: u64,
}

/// The result of a transfer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferReport {
    /// The number of rows of each table.
    pub tables: Vec<(&'static str, u64)>,
    /// Whether an earlier attempt had copied some of these rows.
    pub resumed: bool,
    /// Whether everything had been copied and verified before.
    pub already_done: bool,
    pub totals: TransferTotals,
    /// The head of every wallet. The transfer has checked that the heads are equal in source and destination.
    pub heads: Vec<WalletHead>,
    /// The number of calls that were open in the source and whose outcome is unknown. They were closed as abandoned, at
    /// no charge.
    pub abandoned: u64,
}

impl TransferReport {
    /// The number of rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|(_, rows)| rows).sum()
    }
}

/// The result of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// The total size of all files.
    pub bytes: u64,
    pub media_files: u64,
    /// The number of rows of all tables.
    pub rows: u64,
    pub totals: TransferTotals,
    /// The result of verifying the copy.
    pub verified: VerifyReport,
}

/// The numbers of rows, and the sums over all wallets in micro-credits. A move or restore checks that they are equal in
/// source and destination.
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
