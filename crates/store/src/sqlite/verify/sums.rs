//! What a verification adds up: a wallet's and a key's sums, and an entry as stored.

use ledger::Wallet;
use rusqlite::Row;

use crate::sqlite::rows::{key_row, wallet_row};

/// A wallet as stored, and what its holds and entries add up to.
pub(super) struct WalletSums {
    pub(super) id: String,
    pub(super) stored: Wallet,
    pub(super) stored_entries: i64,
    pub(super) stored_holds_opened: i64,
    pub(super) frozen: i128,
    pub(super) open: i64,
    pub(super) closed: i64,
    pub(super) last_entry: i64,
    pub(super) balance: i128,
    pub(super) gift_balance: i128,
    pub(super) credit_used: i128,
}

pub(super) struct KeySums {
    pub(super) id: String,
    pub(super) wallet: i64,
    pub(super) stored: ledger::Key,
    pub(super) frozen: i128,
    pub(super) counting: i64,
    pub(super) usage: i128,
}

impl WalletSums {
    pub(super) fn load(row: &Row<'_>) -> rusqlite::Result<Self> {
        let stored = wallet_row(row)?;
        Ok(Self {
            id: stored.id.to_string(),
            stored: stored.wallet,
            stored_entries: row.get(9)?,
            stored_holds_opened: row.get(10)?,
            frozen: 0,
            open: 0,
            closed: 0,
            last_entry: 0,
            balance: 0,
            gift_balance: 0,
            credit_used: 0,
        })
    }
}

impl KeySums {
    pub(super) fn load(row: &Row<'_>) -> rusqlite::Result<Self> {
        let stored = key_row(row)?;
        let id = stored.id.to_string();
        Ok(Self {
            id,
            wallet: row.get(17)?,
            stored: stored.key,
            frozen: 0,
            counting: 0,
            usage: 0,
        })
    }
}

pub(super) struct Entry {
    pub(super) wallet: i64,
    pub(super) seq: i64,
    pub(super) kind: String,
    pub(super) closes: Option<i64>,
    pub(super) key: Option<i64>,
    pub(super) held: Option<i64>,
    pub(super) charge: i64,
    pub(super) balance: i64,
    pub(super) gift_balance: i64,
    pub(super) credit_used: i64,
    pub(super) meter: Option<String>,
    pub(super) price_version: Option<i64>,
    pub(super) basis: Option<String>,
}

impl Entry {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            wallet: row.get(0)?,
            seq: row.get(1)?,
            kind: row.get(2)?,
            closes: row.get(3)?,
            key: row.get(4)?,
            held: row.get(5)?,
            charge: row.get(6)?,
            balance: row.get(7)?,
            gift_balance: row.get(8)?,
            credit_used: row.get(9)?,
            meter: row.get(10)?,
            price_version: row.get(11)?,
            basis: row.get(12)?,
        })
    }
}
