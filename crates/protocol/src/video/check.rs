//! Checks that several video protocols share.

use crate::failure::Failure;
use crate::guard;
use crate::json::{Integer, Members, Raw, Shape};
use crate::profile::{AllowedValues, Profile};

/// Refuses a word that is not allowed. If the allowed words are not known, the upstream decides.
/// `param` is the name of the member in the message for the client.
pub(super) fn word(
    param: &'static str,
    word: &str,
    allowed: Option<&AllowedValues>,
) -> Result<(), Failure> {
    match allowed {
        Some(allowed) if !allowed.has_word(word) => {
            let message = format!("`{param}` must be one of {allowed} on this model.");
            Err(Failure::invalid(message).param(param))
        }
        _ => Ok(()),
    }
}

/// Refuses a duration that the model does not support, in general or at this resolution.
pub(super) fn seconds(
    param: &'static str,
    seconds: i64,
    resolution: &str,
    profile: &Profile,
) -> Result<(), Failure> {
    let refused = |allowed: Option<&AllowedValues>| {
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

/// An integer, or a string that contains one.
pub(super) fn whole(
    members: &Members<'_>,
    name: &str,
    param: &'static str,
) -> Result<Option<i64>, Failure> {
    let Some(raw) = members.get(name)? else {
        return Ok(None);
    };
    let wrong = || Failure::invalid(format!("`{param}` must be a whole number.")).param(param);
    whole_number(raw).map(Some).ok_or_else(wrong)
}

/// The value of an integer, or of a string that contains one. A negative integer counts as -1, unless
/// it is in a string.
pub(super) fn whole_number(raw: Raw<'_>) -> Option<i64> {
    match raw.shape() {
        Shape::String => {
            let text = raw.string()?.decode().ok()?;
            text.trim().parse().ok()
        }
        _ => match raw.integer()? {
            Integer::Value(value) => i64::try_from(value).ok(),
            Integer::Negative => Some(-1),
            Integer::Huge => None,
        },
    }
}

/// Whether a value is a string of base64, in either alphabet, that is not empty.
pub(super) fn is_base64(raw: Raw<'_>) -> bool {
    let text = raw.string().and_then(|text| text.decode().ok());
    text.is_some_and(|text| {
        let bare = text.trim_end_matches('=');
        let digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
        !bare.is_empty() && bare.bytes().all(digit)
    })
}

/// Refuses members that would make the upstream store something or deliver it elsewhere.
pub(super) fn refuse_state(members: &Members<'_>) -> Result<(), Failure> {
    guard::refuse_reference(members, "output")?;
    guard::refuse_reference(members, "storage_options")?;
    for name in ["store", "background", "deferred"] {
        guard::refuse_storing(members, name)?;
    }
    Ok(())
}

/// Refuses a member that would make the upstream store or send something.
pub(super) fn refuse_member(
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
