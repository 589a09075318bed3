//! Errors in price cards and in pricing.

use super::PriceKey;
use crate::decimal::DecimalError;
use crate::micro::Overflow;

/// The reason why a card cannot be read or a call cannot be priced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// A member of the card is wrong; `key` is its path.
    #[error("`{key}` {fault}")]
    Card {
        /// The path of the member: `input`, `image.high`, `long_context[1].output`.
        key: String,
        /// What is wrong with it.
        fault: CardFault,
    },
    /// The card has no price for something that the call used.
    #[error("the card has no price for `{0}`")]
    Unpriced(PriceKey),
    /// The amount does not fit the amount type.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

/// The reason why a member of a price card is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardFault {
    /// There is no price key of this name.
    #[error("is not a price key")]
    Unknown,
    /// The text is not a price.
    #[error("{0}")]
    Decimal(DecimalError),
    /// The member has the wrong shape.
    #[error("must be {wanted}, not {found}")]
    Shape {
        /// The expected shape.
        wanted: &'static str,
        /// The actual shape.
        found: &'static str,
    },
    /// A required member is missing.
    #[error("is missing")]
    Missing,
    /// Two members mean the same thing, such as a tier in two spellings.
    #[error("stands twice")]
    Duplicate,
}
