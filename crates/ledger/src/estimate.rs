//! The estimate: what is held for a call before it is made.

use crate::meter::Meter;
use crate::micro::Micro;
use crate::price::{PriceCard, PriceError};

/// The most a text call may use, as the request and the model's profile bound it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bound {
    /// Input tokens, as counted at admission.
    pub input_tokens: u64,
    /// Output tokens of one choice at most; none when nothing bounds them.
    pub output_tokens_max: Option<u64>,
    /// How many choices were asked for; none asked for is one.
    pub choices: u32,
}

/// What is reserved for a call: its input, and its output bound times its choices, but not more
/// than `reserve_tokens` of output; 0 reserves the whole bound.
///
/// A caller's `max_tokens: 128000` must not freeze a small wallet, so the reserve is small and
/// grows while output is observed. A call that nothing bounds reserves more than any wallet has.
pub fn bound_meter(bound: &Bound, reserve_tokens: u64) -> Meter {
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

/// The credits to hold for a call.
pub fn hold(card: &PriceCard, bound: &Bound, reserve_tokens: u64) -> Result<Micro, PriceError> {
    hold_of(card, &bound_meter(bound, reserve_tokens))
}

/// The tokens a call takes from a tokens-per-minute bucket at its admission.
pub fn tokens(bound: &Bound, reserve_tokens: u64) -> u64 {
    let meter = bound_meter(bound, reserve_tokens);
    meter.input.saturating_add(meter.output)
}

/// The credits to hold for usage of at most `bound`: its price with the dearest class of input
/// and of output in place of each, and the long-context prices when the input comes near them.
///
/// No usage within the bound costs more, whatever its classes turn out to be. Tiers are taken as
/// they stand in `bound`; where the upstream chooses, put [`PriceCard::dearest_tier`] there.
pub fn hold_of(card: &PriceCard, bound: &Meter) -> Result<Micro, PriceError> {
    card.price_with(&card.dearest_tokens(bound.input_total()), bound)
}
