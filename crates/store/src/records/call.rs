//! The ledger's side of a call: admitted, perhaps extended, closed once.

use ledger::{Ask, Micro, Rates, Step, UnixMs};

use super::ids::{HoldId, KeyId, PriceVersion, RequestId, WalletId};
use super::meter::MeterText;
use crate::queue::durable::Durable;

/// A call that asks to be admitted.
#[derive(Debug, Clone, Copy)]
pub struct Admit {
    pub wallet: WalletId,
    pub key: KeyId,
    pub ask: Ask,
    /// Stored with the hold and its close.
    pub request_id: RequestId,
    pub now: UnixMs,
}

/// An admitted call. The hold is open until it is closed: whoever holds this owes a [`Close`],
/// also when the decision turns out to be lost. Closing a hold that is not there is harmless, and a
/// lost one may be there all the same: a commit can succeed and its answer be lost.
#[derive(Debug)]
#[must_use = "an admitted call keeps credits frozen until its hold is closed"]
pub struct Admitted {
    pub hold: HoldId,
    /// What is left of the key's rates, for the response headers.
    pub rates: Rates,
    /// No byte of the answer goes to the client before this (W12).
    pub durable: Durable,
}

/// More of an open hold: credits and tokens; it never counts as another call.
#[derive(Debug, Clone)]
pub struct Extend {
    pub hold: HoldId,
    pub more: Ask,
    pub now: UnixMs,
}

/// A step of a session: what was used is booked, and the hold goes ahead of it. Amounts and meter
/// are those since the session began.
#[derive(Debug, Clone)]
pub struct SessionStep {
    pub hold: HoldId,
    pub step: Step,
    pub meter: MeterText,
    pub price_version: PriceVersion,
    pub now: UnixMs,
}

/// The end of a hold.
#[derive(Debug, Clone)]
pub struct Close {
    pub hold: HoldId,
    pub end: End,
    pub now: UnixMs,
    pub if_lost: IfLost,
}

/// What becomes of a settlement whose hold was lost with a failed commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfLost {
    /// The call was answered all the same: the charge is booked by an entry of its own.
    Charge,
    /// The caller is told that the call failed: hold and charge stand or fall together.
    Drop,
}

impl Close {
    /// What the close charges, when it charges anything.
    pub(crate) fn charge(&self) -> Option<Micro> {
        match &self.end {
            End::Settled { charge, .. } => Some(*charge),
            End::Released | End::Abandoned => None,
        }
    }
}

/// How a hold ends (W8).
#[derive(Debug, Clone)]
pub enum End {
    /// Usage is known or counted. A charge for reported usage is booked whatever was held. Of a
    /// session it is the charge for all of it; what its steps have booked is taken off.
    Settled {
        charge: Micro,
        meter: MeterText,
        price_version: PriceVersion,
        basis: Basis,
        /// Tokens to correct the key's token rate by; `None` leaves the reservation.
        tokens: Option<u64>,
    },
    /// Nothing was delivered.
    Released,
    /// The outcome cannot be learnt.
    Abandoned,
}

/// Where a settled meter comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The upstream reported it: the charge is the price of the meter.
    Reported,
    /// We counted: the charge is the price of the meter, which the store caps at the hold and
    /// what was booked before (B2).
    Counted,
}

impl Basis {
    /// The word that is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Counted => "counted",
        }
    }
}

/// A word that names no basis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is nothing a settlement rests on")]
pub struct UnknownBasis(String);

impl std::str::FromStr for Basis {
    type Err = UnknownBasis;

    fn from_str(word: &str) -> Result<Self, UnknownBasis> {
        match word {
            "reported" => Ok(Self::Reported),
            "counted" => Ok(Self::Counted),
            _ => Err(UnknownBasis(word.to_owned())),
        }
    }
}
