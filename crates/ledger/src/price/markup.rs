//! Computes prices from costs by a markup factor.

use std::fmt;
use std::str::FromStr;

use super::card::{PriceCard, TokenPrices};
use super::{Price, PriceKey};
use crate::decimal::{self, DecimalError};
use crate::micro::Overflow;

/// The maximum number of digits after the point of a factor.
const DIGITS: u32 = 6;
const ONE: i64 = 10_i64.pow(DIGITS);

/// The factor between a cost and a price, such as `1.2`. It is positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Markup(i64);

impl Markup {
    /// The price equals the cost.
    pub const NONE: Self = Self(ONE);

    /// The price for a cost, rounded up to the next 1e-12 credit.
    fn apply(self, cost: Price) -> Result<Price, Overflow> {
        let product = i128::from(cost.pico()) * i128::from(self.0);
        let one = i128::from(ONE);
        let rest = i128::from(product % one > 0);
        i64::try_from(product / one + rest)
            .map(Price::from_pico)
            .map_err(|_| Overflow)
    }
}

impl FromStr for Markup {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        match decimal::parse(text, DIGITS as usize)? {
            factor if factor > 0 => Ok(Self(factor)),
            _ => Err(DecimalError::Malformed),
        }
    }
}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal::show(self.0, DIGITS, f)
    }
}

impl PriceCard {
    /// A copy of the card with every price multiplied. This is the only place that rounds a price;
    /// the amount of a call is rounded again, once, at its end.
    pub fn marked_up(&self, markup: Markup) -> Result<Self, Overflow> {
        let mut card = self.clone();
        multiply(&mut card.tokens, markup)?;
        for threshold in &mut card.long_context {
            multiply(&mut threshold.tokens, markup)?;
        }
        let plain = card.plain.iter_mut().flatten();
        let tiers = card.tiers.values_mut().flatten().map(|(_, price)| price);
        for price in plain.chain(tiers).chain(card.tools.values_mut()) {
            *price = markup.apply(*price)?;
        }
        Ok(card)
    }
}

fn multiply(tokens: &mut TokenPrices, markup: Markup) -> Result<(), Overflow> {
    for key in PriceKey::INPUTS.into_iter().chain(PriceKey::OUTPUTS) {
        if let Some(cost) = tokens.named(key) {
            tokens.set(key, Some(markup.apply(cost)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn card(json: &str) -> PriceCard {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn every_price_of_a_card_is_multiplied() {
        let cost = card(
            r#"{"input":"1","cached_input":"0.1","output":"10","usd":"1",
                "image":{"default":"0.04","2k":"0.07"},"tools":{"web_search":"0.01"},
                "long_context":[{"above_tokens":200000,"input":"2","output":"15"}]}"#,
        );
        let price = cost.marked_up("1.25".parse().unwrap()).unwrap();
        assert_eq!(
            price,
            card(
                r#"{"input":"1.25","cached_input":"0.125","output":"12.5","usd":"1.25",
                    "image":{"default":"0.05","2k":"0.0875"},"tools":{"web_search":"0.0125"},
                    "long_context":[{"above_tokens":200000,"input":"2.5","output":"18.75"}]}"#,
            )
        );
        assert_eq!(cost.marked_up(Markup::NONE).unwrap(), cost);
    }

    #[test]
    fn a_price_is_exact_or_rounded_up_to_the_last_digit() {
        for (cost, markup, price) in [
            ("0.15", "1.1", "0.165"),
            ("0.000000000001", "1.000001", "0.000000000002"),
            ("0.000000000003", "0.333333", "0.000000000001"),
            ("0", "3", "0"),
        ] {
            let cost: Price = cost.parse().unwrap();
            let markup: Markup = markup.parse().unwrap();
            assert_eq!(markup.apply(cost).unwrap().to_string(), price);
        }
        let dear: Price = "9000000".parse().unwrap();
        assert_eq!("2".parse::<Markup>().unwrap().apply(dear), Err(Overflow));
    }

    #[test]
    fn a_factor_is_a_decimal_above_zero() {
        for text in ["", "0", "-1", "1,2", "x", "0.0000001", "1e2"] {
            assert!(text.parse::<Markup>().is_err(), "{text}");
        }
        assert_eq!("1.20".parse::<Markup>().unwrap().to_string(), "1.2");
    }

    proptest! {
        #[test]
        fn a_markup_of_one_or_more_never_lowers_a_price(cost in 0..1_000_000_000_000_i64, factor in ONE..100 * ONE) {
            let cost = Price::from_pico(cost);
            prop_assert!(Markup(factor).apply(cost).unwrap() >= cost);
        }
    }
}
