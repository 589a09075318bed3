//! Parses decimal numbers of other systems exactly, and converts them to credits.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Neg, Sub};

use ledger::Micro;

const AMOUNT_DECIMALS: u32 = 12;
/// 10^6: one micro-credit in units of an [`Amount`].
const UNITS_PER_MICRO: i128 = 1_000_000;
/// The maximum number of digits in a number, more than any amount or price has.
const DIGITS_MAX: usize = 34;

/// A decimal number: `digits` times 10 to the power of `-scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: i128,
    scale: u32,
}

impl Decimal {
    /// Parses `12.5`, `-3` or `2.5e-07`. `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty()
            || digits.len() > DIGITS_MAX
            || !digits.bytes().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        let mut digits: i128 = digits.parse().ok()?;
        let mut scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        if scale < 0 {
            let factor = 10_i128.checked_pow(scale.unsigned_abs())?;
            digits = digits.checked_mul(factor)?;
            scale = 0;
        }
        let digits = if negative { -digits } else { digits };
        let scale = u32::try_from(scale).ok().filter(|it| *it <= 64)?;
        Some(Self { digits, scale }.shortened())
    }

    pub(crate) fn integer(number: i64) -> Self {
        Self {
            digits: number.into(),
            scale: 0,
        }
        .shortened()
    }

    pub(crate) fn is_negative(self) -> bool {
        self.digits < 0
    }

    pub(crate) fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// The exact product. `None` if it has too many digits.
    pub(crate) fn times(self, other: Self) -> Option<Self> {
        let product = Self {
            digits: self.digits.checked_mul(other.digits)?,
            scale: self.scale.checked_add(other.scale)?,
        };
        Some(product.shortened())
    }

    /// The quotient by a positive whole number, truncated to 24 decimals.
    pub(crate) fn over(self, divisor: i64) -> Option<Self> {
        const DECIMALS: u32 = 24;
        let divisor = i128::from(divisor);
        if divisor <= 0 {
            return None;
        }
        let shift = DECIMALS.saturating_sub(self.scale);
        let digits = self.digits.checked_mul(10_i128.checked_pow(shift)?)?;
        let quotient = Self {
            digits: digits / divisor,
            scale: self.scale.max(DECIMALS),
        };
        Some(quotient.shortened())
    }

    /// The number without trailing zeros.
    fn shortened(mut self) -> Self {
        while self.scale > 0 && self.digits % 10 == 0 {
            self.digits /= 10;
            self.scale -= 1;
        }
        self
    }

    /// The amount in credits, rounded half to even to 12 decimals. This removes the noise of floats in the source.
    pub(crate) fn amount(self) -> Option<Amount> {
        if self.scale <= AMOUNT_DECIMALS {
            let factor = 10_i128.checked_pow(AMOUNT_DECIMALS - self.scale)?;
            return self.digits.checked_mul(factor).map(Amount);
        }
        let divisor = 10_i128.checked_pow(self.scale - AMOUNT_DECIMALS)?;
        let (whole, rest) = (
            self.digits.div_euclid(divisor),
            self.digits.rem_euclid(divisor),
        );
        let is_up = match (rest * 2).cmp(&divisor) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => whole % 2 != 0,
            std::cmp::Ordering::Greater => true,
        };
        Some(Amount(whole + i128::from(is_up)))
    }

    /// The text of a price with at most 12 decimals, rounded up, and whether rounding changed it.
    pub(crate) fn price(self) -> Option<(String, bool)> {
        if self.is_negative() {
            return None;
        }
        let amount = if self.scale <= AMOUNT_DECIMALS {
            self.amount()?
        } else {
            let divisor = 10_i128.checked_pow(self.scale - AMOUNT_DECIMALS)?;
            Amount(self.digits.checked_add(divisor - 1)? / divisor)
        };
        Some((amount.to_string(), self.scale > AMOUNT_DECIMALS))
    }
}

/// An exact amount of credits, in units of 1e-12.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amount(i128);

impl Amount {
    pub(crate) const ZERO: Self = Self(0);

    /// Converts a number of parts to credits, rounded down. One credit has `per_credit` parts. `None` if `per_credit`
    /// is not positive.
    pub(crate) fn of_parts(parts: i64, per_credit: i64) -> Option<Self> {
        let units = i128::from(parts).checked_mul(10_i128.pow(AMOUNT_DECIMALS))?;
        (per_credit > 0).then(|| Self(units.div_euclid(per_credit.into())))
    }

    /// The amount rounded down to a whole micro-credit.
    pub(crate) fn down(self) -> Option<Micro> {
        let micro = i64::try_from(self.0.div_euclid(UNITS_PER_MICRO)).ok()?;
        Some(Micro::new(micro))
    }
}

impl From<Micro> for Amount {
    fn from(micro: Micro) -> Self {
        Self(i128::from(micro.get()) * UNITS_PER_MICRO)
    }
}

// Sums of 64-bit amounts in units of 1e-12 stay far below the limit of 128 bits, so they never saturate.
impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Amount {
    type Output = Self;

    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, units) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let one = 10_u128.pow(AMOUNT_DECIMALS);
        let fraction = format!("{:012}", units % one);
        let fraction = fraction.trim_end_matches('0');
        let dot = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{}{dot}{fraction}", units / one)
    }
}

impl serde::Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        Decimal::parse(text).unwrap().amount().unwrap()
    }

    #[test]
    fn numbers_are_read_exactly() {
        for (text, expected, micro) in [
            ("12.345678901234567", "12.345678901235", 12_345_678),
            ("0.30000000000000004", "0.3", 300_000),
            ("2e-07", "0.0000002", 0),
            ("246.913578", "246.913578", 246_913_578),
            ("-0.0000015", "-0.0000015", -2),
            ("1e3", "1000", 1_000_000_000),
            ("+0", "0", 0),
            ("0.0000000000005", "0", 0),
            ("0.0000000000015", "0.000000000002", 0),
        ] {
            let amount = amount(text);
            assert_eq!(amount.to_string(), expected, "{text}");
            assert_eq!(amount.down(), Some(Micro::new(micro)), "{text}");
        }
        for text in ["", "x", "1.2.3", "1e", "--1", "nan", "inf", "1e99"] {
            assert!(Decimal::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn prices_are_products_rounded_up_once() {
        let times = |a: &str, b: &str| {
            let product = Decimal::parse(a).unwrap().times(Decimal::parse(b).unwrap());
            product.unwrap().price().unwrap()
        };
        assert_eq!(times("1.25", "2"), ("2.5".to_owned(), false));
        assert_eq!(times("0.15", "2"), ("0.3".to_owned(), false));
        assert_eq!(
            times("0.0684931506849315", "2"),
            ("0.13698630137".to_owned(), true)
        );
        assert!(Decimal::parse("-1").unwrap().price().is_none());
    }

    #[test]
    fn a_quota_is_a_whole_number_of_micro_credits() {
        let usd = Amount::of_parts(123_456_789, 500_000).unwrap();
        assert_eq!(usd.to_string(), "246.913578");
        let third = Amount::of_parts(-1, 3).unwrap();
        assert_eq!(third.down(), Some(Micro::new(-333_334)));
        let large = Amount::of_parts(1_000_000_000_000_000, 500_000).unwrap();
        assert_eq!(large.to_string(), "2000000000");
        let largest = Amount::of_parts(i64::MAX, 1).unwrap();
        assert_eq!(largest.to_string(), i64::MAX.to_string());
        assert_eq!(Amount::of_parts(1, 0), None);
    }

    proptest::proptest! {
        #[test]
        fn an_amount_is_its_micro_credits_and_a_rest_below_one(micro in -1_000_000_000_000_i64..1_000_000_000_000, rest in 0_i128..1_000_000) {
            let amount = Amount(i128::from(micro) * UNITS_PER_MICRO + rest);
            proptest::prop_assert_eq!(amount.down(), Some(Micro::new(micro)));
            proptest::prop_assert_eq!(amount - Amount::from(Micro::new(micro)), Amount(rest));
        }
    }
}
