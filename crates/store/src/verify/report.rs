//! What `ledger verify` answers (V1 to V9 of `docs/invariants.md`).

use std::fmt;

use crate::chain::WalletHead;

/// The outcome of a verification: clean when nothing differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    pub wallets: u64,
    pub keys: u64,
    pub open_holds: u64,
    pub entries: u64,
    /// The head of every wallet as its entries give it, by wallet id.
    pub heads: Vec<WalletHead>,
    pub differences: Vec<Difference>,
}

impl VerifyReport {
    /// Whether every rule holds.
    pub fn is_clean(&self) -> bool {
        self.differences.is_empty()
    }
}

/// One rule that does not hold for one wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The wallet's id.
    pub wallet: String,
    pub rule: Rule,
    /// Which amount, key, hold or entry.
    pub what: String,
    pub expected: String,
    pub found: String,
}

/// The checks, as `docs/invariants.md` numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Open holds are what is frozen.
    V1Frozen,
    /// Entries add up to the columns, and the last ones say the credit limit and the status.
    V2Entries,
    /// No balance beside used credit.
    V3Credit,
    /// Each hold is open or has one close; entries are numbered without a gap.
    V4Closes,
    /// A key's usage is its entries, and it is a key of their wallet.
    V5Usage,
    /// Each open hold has a live owner.
    V6Owner,
    /// Stored usage re-prices to the stored charge.
    V7Price,
    /// Each finished task has a closed hold and, where it was asked for, a callback of equal bytes.
    V8Tasks,
    /// Entries hash to the wallet's head, and the heads noted before are hashes of the same chain.
    V9Chain,
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
        })
    }
}
