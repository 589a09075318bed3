//! The ledger's side of a call: admission, extension and close.

use ledger::{Micro, Reservation, Step, UnixMs};

use super::cost::Cost;
use super::ids::{HoldId, KeyId, PriceVersion, RequestId, WalletId};
use super::meter::MeterText;

/// A request to admit a call.
#[derive(Debug, Clone, Copy)]
pub struct Admit {
    pub wallet: WalletId,
    pub key: KeyId,
    pub ask: Reservation,
    /// Stored with the hold and its close.
    pub request_id: RequestId,
    pub now: UnixMs,
}

/// Extends an open hold by credits and tokens. An extension does not count as another call.
#[derive(Debug, Clone)]
pub struct Extend {
    pub hold: HoldId,
    pub more: Reservation,
    pub now: UnixMs,
}

/// A step of a session: books the usage and extends the hold. Amounts and meter are totals since the session began.
#[derive(Debug, Clone)]
pub struct SessionStep {
    pub hold: HoldId,
    pub step: Step,
    pub meter: MeterText,
    pub price_version: PriceVersion,
    /// The upstream cost so far. `None` if the route has no cost card.
    pub cost: Option<Box<Cost>>,
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

/// How to treat a settlement whose hold was lost with a failed commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfLost {
    /// The call was answered anyway, so the charge is booked as an entry of its own.
    Charge,
    /// The caller is told that the call failed, so the charge is dropped.
    NoCharge,
}

impl Close {
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
    /// The usage was reported or counted. A charge for reported usage is booked in full, even above the hold. The
    /// charge of a session covers the whole session, and the charges of its steps are subtracted.
    Settled {
        charge: Micro,
        meter: MeterText,
        price_version: PriceVersion,
        basis: Basis,
        /// The actual tokens, to correct the key's token rate. `None` keeps the reserved tokens.
        tokens: Option<u64>,
        /// The upstream cost. `None` if the route has no cost card. Boxed, so that calls without it stay small.
        cost: Option<Box<Cost>>,
    },
    /// Nothing was delivered.
    Released,
    /// The outcome cannot be learned.
    Abandoned,
}

/// Whether the usage of a settlement was reported or counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The upstream reported it: the charge is the price of the meter.
    Reported,
    /// We counted it: the charge is the price of the meter, and the store limits it to the hold plus earlier bookings
    /// (B2).
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

/// A word that is not a basis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a basis of a settlement")]
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
