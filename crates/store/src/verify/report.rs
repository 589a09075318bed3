//! The result of `ledger verify` (V1 to V10 of `docs/invariants.md`).

use std::fmt;

use crate::chain::WalletHead;

/// The result of a verification. It is clean if nothing differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    pub wallets: u64,
    pub keys: u64,
    pub open_holds: u64,
    pub entries: u64,
    /// The head of every wallet, computed from its entries, by wallet id.
    pub heads: Vec<WalletHead>,
    pub differences: Vec<Difference>,
}

impl VerifyReport {
    /// Whether every rule holds.
    pub fn is_clean(&self) -> bool {
        self.differences.is_empty()
    }
}

/// One rule that is violated for one wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The wallet's id.
    pub wallet: String,
    pub rule: Rule,
    /// The amount, key, hold or entry that differs.
    pub what: String,
    pub expected: String,
    pub found: String,
}

/// The checks, as numbered in `docs/invariants.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The open holds add up to the frozen amounts, and their exposures to the exposed amounts.
    V1Frozen,
    /// The entries add up to the amounts of the wallet. The last entries that set its credit limit and status agree
    /// with it.
    V2Entries,
    /// No wallet has a balance while it uses credit.
    V3Credit,
    /// Each hold is open or has one close, and the entry numbers have no gaps.
    V4Closes,
    /// The usage of a key is the sum of its entries. The usage at the beginning of its window's period is the sum up to
    /// that time. The key belongs to the wallet of these entries.
    V5Usage,
    /// Each open hold has a live owner.
    V6Owner,
    /// The stored usage, priced again, gives the stored charge and the stored cost.
    V7Price,
    /// Each ended task has a closed hold, a snapshot and, if it has a callback URL, a callback with the same bytes.
    /// Each other task has an open hold and a time of its next step.
    V8Tasks,
    /// The entries hash to the wallet's head, and earlier noted heads are part of the same chain.
    V9Chain,
    /// The balances that are stored for statements, and each wallet's sum of charges and last time, agree with the
    /// entries.
    V10Points,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1Frozen => "V1 open holds = frozen",
            Self::V2Entries => "V2 entries = amounts",
            Self::V3Credit => "V3 no balance beside credit",
            Self::V4Closes => "V4 one close per hold, no gap",
            Self::V5Usage => "V5 key usage = its entries",
            Self::V6Owner => "V6 holds have a live owner",
            Self::V7Price => "V7 usage re-prices to the charge",
            Self::V8Tasks => "V8 tasks go on, or are settled and told",
            Self::V9Chain => "V9 entries hash to the head",
            Self::V10Points => "V10 stored balances = entries",
        })
    }
}
