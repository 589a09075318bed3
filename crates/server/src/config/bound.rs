//! Whether the most a call may cost can be known beforehand (reliability N2).

use ledger::{PriceCard, PriceKey};
use protocol::{Kind, Profile};

/// `Err` says what the entry lacks, so that a call could neither be held nor billed.
pub(super) fn check(kind: Kind, price: &PriceCard, profile: &Profile) -> Result<(), String> {
    if let Err(missing) = price.billable_as(kind.as_str()) {
        return Err(missing.join("; "));
    }
    match kind {
        Kind::Text
            if profile
                .max_output_tokens
                .or(profile.context_tokens)
                .is_none() =>
        {
            Err("no upper bound: the profile has no max_output_tokens".to_owned())
        }
        Kind::Image
            if price.unit_price(PriceKey::Image).is_none()
                && profile.image_tokens_max.is_none() =>
        {
            Err("no upper bound: the profile has no image_tokens_max".to_owned())
        }
        // The built-in profiles bound the length of a video.
        Kind::Video if profile.base.is_none() && profile.durations.is_none() => {
            Err("no upper bound: the profile has neither base nor durations".to_owned())
        }
        // What is read is counted before the call; voice is held step by step.
        Kind::Text | Kind::Embedding | Kind::Image | Kind::Video | Kind::Audio => Ok(()),
    }
}
