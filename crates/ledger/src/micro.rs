//! The type of all amounts: whole micro-credits.

use std::fmt;
use std::str::FromStr;

use crate::decimal::{self, DecimalError};

/// An amount in whole micro-credits; 1 credit is 1,000,000 micro-credits.
///
/// The type has no arithmetic operators on purpose: every sum is checked, and the caller handles
/// overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micro(i64);

/// The error for an amount that the ledger cannot represent: it does not fit an `i64`, or it is
/// negative where only positive amounts make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the amount is beyond what the ledger can hold")]
pub struct Overflow;

impl Micro {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The largest amount.
    pub const MAX: Self = Self(i64::MAX);

    /// An amount of `micro` micro-credits.
    pub const fn new(micro: i64) -> Self {
        Self(micro)
    }

    /// The number of micro-credits.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Whether the amount is below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The sum, or `None` if it does not fit.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The difference, or `None` if it does not fit.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }
}

/// Formats an amount as decimal credits without trailing zeros, as the API does.
impl fmt::Display for Micro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal::show(self.0, 6, f)
    }
}

/// Parses decimal credits with at most six digits after the point.
impl FromStr for Micro {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        decimal::parse(text, 6).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn micro_is_shown_without_trailing_zeros() {
        for (micro, shown) in [
            (0, "0"),
            (1, "0.000001"),
            (10, "0.00001"),
            (1_500_000, "1.5"),
            (-250_000, "-0.25"),
            (-1_000_000, "-1"),
            (100_000_000, "100"),
            (i64::MAX, "9223372036854.775807"),
            (i64::MIN, "-9223372036854.775808"),
        ] {
            assert_eq!(Micro::new(micro).to_string(), shown);
        }
    }

    #[test]
    fn decimal_credits_are_read_exactly() {
        for (text, micro) in [
            ("0", 0),
            ("-0", 0),
            ("1", 1_000_000),
            ("007.50", 7_500_000),
            ("0.000001", 1),
            ("-0.25", -250_000),
            ("9223372036854.775807", i64::MAX),
            ("-9223372036854.775808", i64::MIN),
        ] {
            assert_eq!(text.parse::<Micro>(), Ok(Micro::new(micro)), "{text}");
        }
    }

    #[test]
    fn texts_that_are_not_decimals_are_refused() {
        use DecimalError::{Malformed, TooFine, TooLarge};
        for (text, error) in [
            ("", Malformed),
            ("-", Malformed),
            (".", Malformed),
            (".5", Malformed),
            ("1.", Malformed),
            ("+1", Malformed),
            ("--1", Malformed),
            ("1.-5", Malformed),
            (" 1", Malformed),
            ("1 ", Malformed),
            ("1,5", Malformed),
            ("1.2.3", Malformed),
            ("1e3", Malformed),
            ("0x10", Malformed),
            ("1_000", Malformed),
            ("\u{661}", Malformed),
            ("NaN", Malformed),
            ("inf", Malformed),
            ("0.0000001", TooFine(6)),
            ("1.0000000", TooFine(6)),
            ("9223372036854.775808", TooLarge),
            ("-9223372036854.775809", TooLarge),
            ("99999999999999999999999999999999999999999999", TooLarge),
        ] {
            assert_eq!(text.parse::<Micro>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn sums_that_do_not_fit_are_none() {
        assert_eq!(Micro::MAX.checked_add(Micro::new(1)), None);
        assert_eq!(Micro::new(i64::MIN).checked_sub(Micro::new(1)), None);
        assert_eq!(
            Micro::new(5).checked_sub(Micro::new(7)),
            Some(Micro::new(-2))
        );
    }

    proptest! {
        #[test]
        fn formatted_amounts_read_back(micro: i64) {
            prop_assert_eq!(Micro::new(micro).to_string().parse(), Ok(Micro::new(micro)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9. eE]{0,30}") {
            if let Ok(micro) = text.parse::<Micro>() {
                prop_assert_eq!(micro.to_string().parse(), Ok(micro));
            }
        }
    }
}
