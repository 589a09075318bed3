//! Checks that the maximum cost of a call can be computed in advance (N2).

use ledger::{PriceCard, PriceKey};
use protocol::{BuiltInProfile, Kind, Profile};
use upstream::Protocol;

const NO_OUTPUT_BOUND: &str = "no upper bound: the profile has no max_output_tokens";

/// Checks that the gateway can hold credits for calls of a model and bill the calls. `Err` says what the entry lacks.
pub(crate) fn check(kind: Kind, price: &PriceCard, profile: &Profile) -> Result<(), String> {
    if let Err(missing) = price.billable_as(kind.as_str()) {
        return Err(missing.join("; "));
    }
    match kind {
        Kind::Text if !bounds_output(profile) => Err(NO_OUTPUT_BOUND.to_owned()),
        Kind::Image
            if price.unit_price(PriceKey::Image).is_none()
                && profile.image_tokens_max.is_none() =>
        {
            Err("no upper bound: the profile has no image_tokens_max".to_owned())
        }
        // Answers of models with this base are counted in tokens, like text.
        Kind::Image
            if profile.base == Some(BuiltInProfile::NativeImage)
                && (price.unit_price(PriceKey::Input).is_none()
                    || price.unit_price(PriceKey::Output).is_none()) =>
        {
            Err("a model of the base native-image needs `input` and `output`".to_owned())
        }
        Kind::Image
            if profile.base == Some(BuiltInProfile::NativeImage) && !bounds_output(profile) =>
        {
            Err(NO_OUTPUT_BOUND.to_owned())
        }
        Kind::Video => check_video(price, profile),
        // No other bound is needed: input is counted before the call, and the hold of a session grows step by step.
        Kind::Text | Kind::Embedding | Kind::Image | Kind::Audio => Ok(()),
    }
}

/// Whether the length of an answer's text has an upper bound.
fn bounds_output(profile: &Profile) -> bool {
    profile
        .max_output_tokens
        .or(profile.context_tokens)
        .is_some()
}

/// Checks that the cost of a video has an upper bound, and that the model has a price in the unit that its protocol
/// reports. A price in either unit is enough for Omni, which reports seconds and tokens. It is also enough for a model
/// without a base, because the protocol of this model depends on the channel.
fn check_video(price: &PriceCard, profile: &Profile) -> Result<(), String> {
    // The built-in profiles bound the length of a video.
    if profile.base.is_none() && profile.durations.is_none() {
        return Err("no upper bound: the profile has neither base nor durations".to_owned());
    }
    let measure = match engine::video_protocols(profile.base) {
        [Protocol::VideoA | Protocol::Predict] => PriceKey::VideoSecond,
        [Protocol::ContentTask] => PriceKey::VideoTokens,
        _ => return Ok(()),
    };
    match price.unit_price(measure) {
        Some(_) => Ok(()),
        None => Err(format!("a video model of this base needs `{measure}`")),
    }
}
