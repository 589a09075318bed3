//! The ledger's entries, as they are read for reports, for repricing and to explain a call.

use std::fmt;
use std::str::FromStr;

use ledger::{Delta, ManualKind, Micro, UnixMs};

use super::call::Basis;
use super::cost::EntryCost;
use super::ids::{HoldId, KeyId, PriceNumber, WalletId};
use super::meter::MeterText;

/// One posting. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    pub cursor: EntryCursor,
    pub wallet: WalletId,
    /// Its number among the wallet's entries, from 1, without gaps.
    pub seq: i64,
    pub kind: EntryKind,
    pub at: UnixMs,
    pub charge: Micro,
    pub delta: Delta,
    pub note: Option<Box<str>>,
    /// Unique among the wallet's entries.
    pub reference: Option<Box<str>>,
    /// The number of the refunded top-up.
    pub refund_of: Option<i64>,
    /// The name of the person or program that made the entry. Entries of calls have none.
    pub actor: Option<Box<str>>,
    /// Present only in entries of calls.
    pub call: Option<Box<CallRow>>,
}

/// The end of a hold, or a step of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    pub hold: HoldId,
    pub key: KeyId,
    /// The amount held at the end of the hold, or before the step.
    pub held: Micro,
    /// The amount that earlier steps of the session had charged.
    pub booked: Micro,
    pub opened_at: UnixMs,
    pub request_id: Box<str>,
    /// The charged usage; for a session, since its beginning. Released and abandoned holds have none.
    pub usage: Option<SettledUsage>,
}

impl CallRow {
    /// The charge of this entry if all of its usage costs `price`, less earlier bookings. In the entry that ends the
    /// hold, the charge for usage that we counted ourselves is limited to the amount held.
    pub fn charge(&self, kind: EntryKind, price: Micro) -> Micro {
        let (price, booked) = (price.get(), self.booked.get());
        let counted = self
            .usage
            .as_ref()
            .is_some_and(|it| it.basis == Basis::Counted);
        let total = if kind == EntryKind::Settled && counted {
            price.min(booked.saturating_add(self.held.get()))
        } else {
            price
        };
        Micro::new(total.saturating_sub(booked).max(0))
    }
}

/// The usage that a settlement charged, and its prices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledUsage {
    pub meter: MeterText,
    pub price_version: PriceNumber,
    pub basis: Basis,
    /// The upstream cost. `None` if it is unknown.
    pub cost: Option<EntryCost>,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    Settled,
    Released,
    Abandoned,
    /// A step of a session, whose hold stays open.
    Part,
    TopUp,
    Gift,
    Debit,
    Refund,
    Adjustment,
    CreditLimit,
    Status,
}

impl EntryKind {
    const ALL: [Self; 11] = [
        Self::Settled,
        Self::Released,
        Self::Abandoned,
        Self::Part,
        Self::TopUp,
        Self::Gift,
        Self::Debit,
        Self::Refund,
        Self::Adjustment,
        Self::CreditLimit,
        Self::Status,
    ];

    /// The word that is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Released => "released",
            Self::Abandoned => "abandoned",
            Self::Part => "part",
            Self::TopUp => ManualKind::TopUp.as_str(),
            Self::Gift => ManualKind::Gift.as_str(),
            Self::Debit => ManualKind::Debit.as_str(),
            Self::Refund => ManualKind::Refund.as_str(),
            Self::Adjustment => ManualKind::Adjustment.as_str(),
            Self::CreditLimit => "credit_limit",
            Self::Status => "status",
        }
    }
}

impl From<ManualKind> for EntryKind {
    fn from(kind: ManualKind) -> Self {
        match kind {
            ManualKind::TopUp => Self::TopUp,
            ManualKind::Gift => Self::Gift,
            ManualKind::Debit => Self::Debit,
            ManualKind::Refund => Self::Refund,
            ManualKind::Adjustment => Self::Adjustment,
        }
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a kind of entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kind of entry")]
pub struct UnknownKind(String);

impl FromStr for EntryKind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| UnknownKind(word.to_owned()))
    }
}

/// A position among the entries, in the order of posting, for paging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryCursor(pub(crate) i64);

/// A query for entries. An entry must meet every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryQuery {
    pub wallet: Option<WalletId>,
    /// The entry that ended this hold.
    pub closes: Option<HoldId>,
    /// Entries posted at or after this time.
    pub since: Option<UnixMs>,
    /// Entries posted before this time.
    pub until: Option<UnixMs>,
    /// Entries after this position: the next page.
    pub after: Option<EntryCursor>,
    /// 0 means the maximum of 4,096.
    pub limit: u32,
}

/// The maximum number of entries per page.
pub const ENTRIES_MAX: u32 = 4_096;

/// A version of a model's price card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceRow {
    pub version: PriceNumber,
    pub model: Box<str>,
    /// The card in JSON, as it was stored.
    pub card: Box<str>,
    pub created_at: UnixMs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_reads_back_from_its_word() {
        for kind in EntryKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("settle".parse::<EntryKind>().is_err());
    }
}
