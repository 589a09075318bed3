//! The cost of a call at its upstream, and the card by which it was computed.

use ledger::{Micro, UnixMs};

use crate::sha256::Sha256;

/// The cost of a call on the route that answered it. For a session, the cost since its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub amount: Micro,
    pub version: CostVersion,
}

impl Cost {
    /// The part of this cost that earlier entries of the same hold have not booked.
    pub(crate) fn beyond(&self, booked: Micro) -> Micro {
        let rest = self.amount.checked_sub(booked);
        rest.unwrap_or(Micro::ZERO).max(Micro::ZERO)
    }
}

/// A version of a route's cost card, kept forever. It also identifies the channel that served the call.
///
/// It contains the digest of the card, so that an entry's hash covers the card that its cost was computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostVersion {
    number: CostNumber,
    /// SHA-256 of model, channel and card.
    digest: [u8; 32],
}

impl CostVersion {
    /// The version that is stored under `number`.
    pub(crate) fn new(number: i64, model: &str, channel: &str, card: &str) -> Self {
        let mut digest = Sha256::new();
        // The lengths keep different pairs of texts from having the same bytes.
        for text in [model, channel] {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        digest.update(card);
        Self {
            number: CostNumber(number),
            digest: digest.finish(),
        }
    }

    /// The number that is stored with an entry.
    pub fn number(self) -> CostNumber {
        self.number
    }

    /// SHA-256 of model, channel and card.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

/// The number of a cost version, as entries refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CostNumber(pub(crate) i64);

impl CostNumber {
    /// The number that is stored.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// A version of a route's cost card, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRow {
    pub version: CostNumber,
    /// The public model.
    pub model: Box<str>,
    pub channel: Box<str>,
    /// The card in JSON, as it was stored.
    pub card: Box<str>,
    pub created_at: UnixMs,
}

/// The cost of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryCost {
    /// The cost of this entry alone, even if it is a step of a session.
    pub amount: Micro,
    pub version: CostNumber,
}
