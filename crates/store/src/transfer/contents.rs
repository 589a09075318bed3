//! Summarizes the contents of a store, so that two stores can be compared.

use std::fmt::Write as _;

use super::error::TransferError;
use super::report::TransferTotals;
use super::side::Side;
use super::tables::TABLES;

use crate::sha256::Sha256;

/// The row counts of all tables and a digest of all wallets. Every booking, administrative change and start of a server
/// adds a row, so these values show whether a store was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreContents {
    pub(crate) counts: Vec<u64>,
    wallets: [u8; 32],
    pub(crate) totals: TransferTotals,
}

impl StoreContents {
    pub(crate) async fn of(side: &Side) -> Result<Self, TransferError> {
        let mut counts = Vec::with_capacity(TABLES.len());
        let mut totals = TransferTotals::default();
        let mut wallets = Sha256::new();
        for table in TABLES {
            let count = side.count(table).await?;
            counts.push(count);
            match table.name {
                "wallets" => totals.wallets = count,
                "keys" => totals.keys = count,
                "entries" => totals.entries = count,
                _ => {}
            }
        }
        for table in TABLES.iter().filter(|table| table.name == "wallets") {
            let mut after = None;
            loop {
                let rows = side.read(table, after.as_deref(), table.batch_rows).await?;
                for row in &rows {
                    wallets.update(serde_json::to_vec(row).unwrap_or_default());
                    for (column, value) in table.columns.iter().zip(row) {
                        let value = i128::from(value.integer());
                        match column.name {
                            "balance" => totals.balance += value,
                            "gift_balance" => totals.gift_balance += value,
                            "credit_used" => totals.credit_used += value,
                            "charged" => totals.charged += value,
                            _ => {}
                        }
                    }
                }
                let Some(last) = rows.last().filter(|_| rows.len() == table.batch_rows) else {
                    break;
                };
                after = Some(last.iter().take(table.key).cloned().collect::<Vec<_>>());
            }
        }
        Ok(Self {
            counts,
            wallets: wallets.finish(),
            totals,
        })
    }

    pub(crate) fn rows(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Identifies the source of a transfer. The fingerprint changes when the source is used.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.wallets);
        for count in &self.counts {
            hasher.update(count.to_be_bytes());
        }
        hex(&hasher.finish())
    }

    /// The names of the tables that contain rows.
    pub(crate) fn filled(&self) -> String {
        let filled = TABLES.iter().zip(&self.counts);
        let filled = filled.filter(|(_, count)| **count > 0);
        let names: Vec<&str> = filled.map(|(table, _)| table.name).collect();
        names.join(", ")
    }

    /// Describes the first difference from another store. `None` if they are equal.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let counts = self.counts.iter().zip(&other.counts);
        for (table, (own, others)) in TABLES.iter().zip(counts) {
            if own != others {
                return Some(format!("{} has {others} rows instead of {own}", table.name));
            }
        }
        (self != other).then(|| "a wallet differs".to_owned())
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
