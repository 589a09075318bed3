//! Estimates how many credits to hold for a call before it is made.

use crate::meter::Meter;
use crate::micro::Micro;
use crate::price::{PriceCard, PriceError};

/// The maximum usage of a text call, from its request and the model's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextBound {
    /// Input tokens, as counted at admission.
    pub input_tokens: u64,
    /// The maximum number of output tokens of one choice; `None` if unbounded.
    pub output_tokens_max: Option<u64>,
    /// The number of requested choices; 0 counts as 1.
    pub choices: u32,
}

/// The usage to reserve for a call: its input, and its output bound times its choices. At most
/// `reserve_tokens` of output are reserved; 0 reserves the whole bound.
///
/// `max_tokens: 128000` must not freeze a small wallet, so the reservation starts small and grows
/// with the observed output. With `reserve_tokens` 0, a call without an output bound reserves more
/// than any wallet has.
pub fn bound_meter(bound: &TextBound, reserve_tokens: u64) -> Meter {
    let one = bound.output_tokens_max.unwrap_or(u64::MAX);
    let whole = one.saturating_mul(u64::from(bound.choices.max(1)));
    let output = if reserve_tokens == 0 {
        whole
    } else {
        whole.min(reserve_tokens)
    };
    Meter {
        input: bound.input_tokens,
        output,
        ..Meter::default()
    }
}

/// The credits to hold for usage of at most `bound`: its price with the most expensive class of
/// input and of output. The input count may be a fifth too low, so the long-context prices of every
/// threshold below 5/4 of the count are included.
///
/// No usage within the bound costs more, whichever classes its tokens belong to. The tiers are those of `bound`. If the
/// upstream chooses the tier, the caller must put [`PriceCard::dearest_tier`] into `bound`.
pub fn hold_of(card: &PriceCard, bound: &Meter) -> Result<Micro, PriceError> {
    card.price_with(&card.dearest_tokens(bound.input_total()), bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::micro::Overflow;

    fn card(json: &str) -> PriceCard {
        serde_json::from_str(json).unwrap()
    }

    fn bound(input_tokens: u64, output_tokens_max: Option<u64>, choices: u32) -> TextBound {
        TextBound {
            input_tokens,
            output_tokens_max,
            choices,
        }
    }

    #[test]
    fn output_is_reserved_up_to_the_reserve() {
        for (max, choices, reserve, reserved) in [
            (Some(100), 1, 4_096, 100),
            (Some(100), 3, 4_096, 300),
            (Some(100), 0, 4_096, 100),
            (Some(128_000), 1, 4_096, 4_096),
            (Some(2_000), 3, 4_096, 4_096),
            (Some(128_000), 2, 0, 256_000),
            (Some(0), 1, 4_096, 0),
            (None, 1, 4_096, 4_096),
            (None, 1, 0, u64::MAX),
            (Some(u64::MAX), u32::MAX, 0, u64::MAX),
        ] {
            let bound = bound(7, max, choices);
            let meter = bound_meter(&bound, reserve);
            assert_eq!((meter.input, meter.output), (7, reserved), "{bound:?}");
        }
    }

    fn held(card: &PriceCard, bound: &TextBound, reserve_tokens: u64) -> Result<Micro, PriceError> {
        hold_of(card, &bound_meter(bound, reserve_tokens))
    }

    #[test]
    fn the_hold_is_the_price_of_the_bound() {
        let card = card(r#"{"input":"1.25","output":"10"}"#);
        let hold = held(&card, &bound(1_000, Some(128_000), 1), 4_096);
        assert_eq!(hold, Ok(Micro::new(1_250 + 40_960)));
    }

    #[test]
    fn the_dearest_class_is_held() {
        let card = card(
            r#"{"input":"4","cached_input":"0.4","cache_write":"5","output":"20","image_output":"30"}"#,
        );
        let hold = held(&card, &bound(100, Some(10), 1), 0);
        assert_eq!(hold, Ok(Micro::new(500 + 300)));
    }

    #[test]
    fn one_hour_writes_are_held_where_they_are_asked_for() {
        let card = card(
            r#"{"input":"4","cached_input":"0.4","cache_write":"5","cache_write_1h":"8","output":"20"}"#,
        );
        let asked = Meter {
            cache_write_1h: 100,
            ..Meter::default()
        };
        let usual = Meter {
            input: 100,
            ..Meter::default()
        };
        assert_eq!(hold_of(&card, &asked), Ok(Micro::new(800)));
        assert_eq!(hold_of(&card, &usual), Ok(Micro::new(500)));
    }

    #[test]
    fn entries_from_before_a_class_price_the_same() {
        let old: Meter = serde_json::from_str(r#"{"input":10,"cache_write":300}"#).unwrap();
        let both: Meter =
            serde_json::from_str(r#"{"input":10,"cache_write":200,"cache_write_1h":100}"#).unwrap();
        for (json, old_price, both_price) in [
            (r#"{"input":"4","output":"1"}"#, 1_240, 1_240),
            (
                r#"{"input":"4","cache_write":"5","output":"1"}"#,
                1_540,
                1_540,
            ),
            (
                r#"{"input":"4","cache_write":"5","cache_write_1h":"8","output":"1"}"#,
                1_540,
                1_840,
            ),
        ] {
            let card = card(json);
            assert_eq!(card.price(&old), Ok(Micro::new(old_price)), "{json}");
            assert_eq!(card.price(&both), Ok(Micro::new(both_price)), "{json}");
        }
    }

    #[test]
    fn long_context_prices_are_held_when_the_count_comes_near() {
        let card = card(
            r#"{"input":"1","output":"0","long_context":{"above_tokens":200000,"input":"2"}}"#,
        );
        for (input, micro) in [
            (160_000, 160_000),
            (160_001, 320_002),
            (200_000, 400_000),
            (200_001, 400_002),
        ] {
            assert_eq!(
                held(&card, &bound(input, Some(0), 1), 0),
                Ok(Micro::new(micro)),
                "{input}"
            );
        }
    }

    #[test]
    fn cheaper_long_context_prices_do_not_lower_the_hold() {
        let card =
            card(r#"{"input":"2","output":"0","long_context":{"above_tokens":100,"input":"1"}}"#);
        assert_eq!(held(&card, &bound(150, Some(0), 1), 0), Ok(Micro::new(300)));
    }

    #[test]
    fn an_unbounded_call_cannot_be_held() {
        let card = card(r#"{"input":"1","output":"10"}"#);
        assert_eq!(
            held(&card, &bound(1, None, 1), 0),
            Err(PriceError::Overflow(Overflow))
        );
    }
}
