//! Checks of what several video protocols have in common.

use crate::failure::Failure;
use crate::json::{Integer, Members, Raw, Shape};
use crate::profile::{Allowed, Profile};

/// Refuses a word that is not among those allowed; where none are known, the upstream judges. `param` is
/// the member's name, for the caller.
pub(super) fn word(
    param: &'static str,
    word: &str,
    allowed: Option<&Allowed>,
) -> Result<(), Failure> {
    match allowed {
        Some(allowed) if !allowed.has_word(word) => {
            let message = format!("`{param}` must be one of {allowed} on this model.");
            Err(Failure::invalid(message).param(param))
        }
        _ => Ok(()),
    }
}

/// Refuses a length that the model does not make, or not at this resolution.
pub(super) fn seconds(
    param: &'static str,
    seconds: i64,
    resolution: &str,
    profile: &Profile,
) -> Result<(), Failure> {
    let refused = |allowed: Option<&Allowed>| {
        allowed
            .filter(|allowed| !allowed.has_number(seconds))
            .cloned()
    };
    let coupled = profile.resolution_durations.as_ref();
    let message = if let Some(allowed) = refused(profile.durations.as_ref()) {
        format!("`{param}` must be {allowed} seconds on this model.")
    } else if let Some(allowed) = refused(coupled.and_then(|it| it.get(resolution))) {
        format!("`{param}` must be {allowed} seconds at {resolution} on this model.")
    } else {
        return Ok(());
    };
    Err(Failure::invalid(message).param(param))
}

/// A whole number, or a string of one.
pub(super) fn whole(
    members: &Members<'_>,
    name: &str,
    param: &'static str,
) -> Result<Option<i64>, Failure> {
    let Some(raw) = members.get(name)? else {
        return Ok(None);
    };
    let number = match raw.shape() {
        Shape::String => raw
            .string()
            .and_then(|text| text.decode().ok()?.trim().parse().ok()),
        _ => match raw.integer() {
            Some(Integer::Value(value)) => i64::try_from(value).ok(),
            Some(Integer::Negative) => Some(-1),
            Some(Integer::Huge) | None => None,
        },
    };
    let wrong = || Failure::invalid(format!("`{param}` must be a whole number.")).param(param);
    number.map(Some).ok_or_else(wrong)
}

/// Whether a value is a string of base64, of either alphabet, that holds anything.
pub(super) fn is_base64(raw: Raw<'_>) -> bool {
    let text = raw.string().and_then(|text| text.decode().ok());
    text.is_some_and(|text| {
        let bare = text.trim_end_matches('=');
        let digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
        !bare.is_empty() && bare.bytes().all(digit)
    })
}

/// Refuses a member that would make the upstream keep or send something.
pub(super) fn keeps_nothing(
    members: &Members<'_>,
    name: &str,
    param: &'static str,
) -> Result<(), Failure> {
    if members.get(name)?.is_none() {
        return Ok(());
    }
    let message = format!("`{param}` is not supported: the service keeps no state.");
    Err(Failure::stateful_not_supported(message).param(param))
}
