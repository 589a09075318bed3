//! Prices and exact amounts: integers over a common denominator, rounded once.

use std::fmt;
use std::str::FromStr;

use crate::decimal::{self, DecimalError};
use crate::micro::{Micro, Overflow};

/// A price in 1e-12 credits per unit of its [`PriceKey`](super::PriceKey): a million tokens, a
/// minute, a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Price(i64);

impl Price {
    pub(crate) const fn from_pico(pico: i64) -> Self {
        Self(pico)
    }

    /// The price in units of 1e-12 credit.
    pub const fn pico(self) -> i64 {
        self.0
    }
}

/// Parses decimal credits with at most twelve digits after the point. Negative prices are refused.
impl FromStr for Price {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        // A price has no sign. This also refuses `-0`.
        if text.starts_with('-') {
            return Err(DecimalError::Malformed);
        }
        decimal::parse(text, 12).map(Self)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal::show(self.0, 12, f)
    }
}

/// An exact amount before rounding.
///
/// Every unit (a million, sixty, 1e10) divides 3e10, so all components of a call share this
/// denominator, and the only division is in [`Exact::round_up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Exact(i128);

/// The common denominator, in parts of 1e-12 credit: the least common multiple of all units.
const PARTS_PER_PICO_CREDIT: i128 = 30_000_000_000;
const PARTS_PER_MICRO: i128 = PARTS_PER_PICO_CREDIT * 1_000_000;
const PARTS_PER_CREDIT: i128 = PARTS_PER_MICRO * 1_000_000;

impl Exact {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// The amount for `quantity` at `price`, where the price is for `per` units; `per` is one of
    /// [`PriceKey::per`](super::PriceKey::per).
    ///
    /// Amounts are never negative, so if one component does not fit, neither does the sum.
    pub(crate) fn of(quantity: u64, price: Price, per: u64) -> Result<Self, Overflow> {
        i128::from(quantity)
            .checked_mul(i128::from(price.0))
            .and_then(|amount| amount.checked_mul(PARTS_PER_PICO_CREDIT / i128::from(per)))
            .map(Self)
            .ok_or(Overflow)
    }

    /// The exact sum, or `None` if it does not fit.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Rounds up to the next whole micro-credit. No other function rounds an amount.
    pub fn round_up(self) -> Result<Micro, Overflow> {
        let whole = self.0 / PARTS_PER_MICRO;
        let rest = i128::from(self.0 % PARTS_PER_MICRO > 0);
        i64::try_from(whole + rest)
            .map(Micro::new)
            .map_err(|_| Overflow)
    }
}

/// Formats an amount as decimal credits with all digits; `…` marks a recurring fraction (thirds).
impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / PARTS_PER_CREDIT)?;
        let mut rest = self.0 % PARTS_PER_CREDIT;
        if rest > 0 {
            f.write_str(".")?;
        }
        // The denominator is 3 x 10^22, so after 22 digits only thirds can be left.
        for _ in 0..22 {
            if rest == 0 {
                return Ok(());
            }
            rest *= 10;
            write!(f, "{}", rest / PARTS_PER_CREDIT)?;
            rest %= PARTS_PER_CREDIT;
        }
        if rest > 0 {
            f.write_str("…")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::PriceKey;

    #[test]
    fn every_unit_divides_the_one_denominator() {
        for key in PriceKey::ALL {
            assert_eq!(PARTS_PER_PICO_CREDIT % i128::from(key.per()), 0, "{key}");
        }
    }

    #[test]
    fn a_price_has_no_sign() {
        assert_eq!("-1".parse::<Price>(), Err(DecimalError::Malformed));
        assert_eq!("-0".parse::<Price>(), Err(DecimalError::Malformed));
        assert_eq!("0".parse::<Price>().map(Price::pico), Ok(0));
        assert_eq!("0.000000000001".parse::<Price>().map(Price::pico), Ok(1));
    }

    #[test]
    fn rounding_is_up_and_only_where_there_is_a_rest() {
        for (parts, micro) in [
            (0, 0),
            (1, 1),
            (PARTS_PER_MICRO - 1, 1),
            (PARTS_PER_MICRO, 1),
            (PARTS_PER_MICRO + 1, 2),
        ] {
            assert_eq!(Exact(parts).round_up(), Ok(Micro::new(micro)), "{parts}");
        }
        assert_eq!(Exact(i128::MAX).round_up(), Err(Overflow));
    }
}
