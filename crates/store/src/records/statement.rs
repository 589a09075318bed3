//! The parts of a wallet's statement.

use ledger::{Micro, UnixMs};

use super::accounts::WalletRow;
use super::balance_point::{BalancePoint, Balances};
use super::entries::{EntryKind, EntryRow};
use super::ids::KeyId;

/// The maximum number of entries per page of a statement.
pub const STATEMENT_ENTRIES_MAX: u32 = 4_096;

/// An entry with the balance after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementEntry {
    pub entry: EntryRow,
    /// The name of the entry's key.
    pub key_name: Option<Box<str>>,
    pub after: Balances,
}

/// The entries of a wallet within a range of time: those after `opening` up to `closing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementRange {
    pub opening: BalancePoint,
    pub closing: BalancePoint,
}

/// The sums of the entries of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementTotals {
    /// In the order of [`EntryKind`]. Kinds without entries are missing.
    pub kinds: Vec<KindTotal>,
    /// Keys with calls in this range, the most expensive first.
    pub keys: Vec<KeyTotal>,
}

/// The entries of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindTotal {
    pub kind: EntryKind,
    pub entries: u64,
    /// The sum of the changes to the wallet's credits.
    pub total: Micro,
}

/// The calls of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTotal {
    pub key: KeyId,
    pub name: Option<Box<str>>,
    /// Calls that have ended, with or without a charge.
    pub calls: u64,
    pub charged: Micro,
}

/// A wallet and its recent spending.
#[derive(Debug, Clone)]
pub struct WalletSpending {
    pub row: WalletRow,
    /// Its position in the list of wallets.
    pub cursor: WalletCursor,
    /// The sum of its charges since [`WalletQuery::day`].
    pub spent_today: Micro,
    /// The sum of its charges since [`WalletQuery::month`].
    pub spent_this_month: Micro,
}

/// A position in the list of wallets, for paging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WalletCursor(pub i64);

/// A query for wallets, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalletQuery {
    /// A part of the name regardless of case, or the beginning of the id.
    pub text: Option<String>,
    /// Wallets after this position: the next page.
    pub after: Option<WalletCursor>,
    /// 0 means the maximum of 1,000.
    pub limit: u32,
    /// The beginning of the current day (UTC).
    pub day: UnixMs,
    /// The beginning of the current month (UTC).
    pub month: UnixMs,
}

/// The maximum number of wallets per page.
pub const WALLETS_MAX: u32 = 1_000;

/// A stored balance, and a row number below those of all later entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StoredBalance {
    pub(crate) point: BalancePoint,
    /// All later entries of the wallet have a larger row number.
    pub(crate) after_row: i64,
}

/// The bound in a search for the latest stored balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredBalanceBound {
    /// The balance after this entry or an earlier one.
    Entry(i64),
    /// The balance after entries that were all posted before this time.
    Before(UnixMs),
}

/// Entries of one wallet by number: those above `after`, up to `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntrySpan {
    /// The number of the wallet.
    pub(crate) wallet: i64,
    pub(crate) after: i64,
    pub(crate) until: i64,
    /// All these entries have a larger row number.
    pub(crate) after_row: i64,
}
