//! Parses the values in a script.

use super::script::{BreakKind, BreakOff, BreakPoint, Status, SubstituteReply, UsageFault};
use crate::habit::VendorRefusal;
use std::time::Duration;

const DURATION_MAX: Duration = Duration::from_secs(3600);
/// The maximum number of calls of one of the upstream's own tools.
const HOSTED_MAX: usize = 1_000;

pub(super) fn required_value(value: Option<&str>) -> Result<&str, String> {
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| "needs a value".to_owned())
}

pub(super) fn flag<T>(value: Option<&str>, set: T) -> Result<T, String> {
    match value {
        None => Ok(set),
        Some(_) => Err("takes no value".to_owned()),
    }
}

pub(super) fn hosted(value: Option<&str>) -> Result<u64, String> {
    number(value, 0, HOSTED_MAX).map(|calls| calls as u64)
}

pub(super) fn duration(value: Option<&str>) -> Result<Duration, String> {
    let value = required_value(value)?;
    let unit_at = value
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(value.len());
    let (digits, unit) = value.split_at(unit_at);
    let number = digits.parse().ok();
    let duration = match unit {
        "ms" => number.map(Duration::from_millis),
        "s" => number.map(Duration::from_secs),
        "m" => number
            .and_then(|minutes: u64| minutes.checked_mul(60))
            .map(Duration::from_secs),
        _ => None,
    };
    duration
        .filter(|duration| *duration <= DURATION_MAX)
        .ok_or_else(|| "needs a duration such as 200ms, 2s or 1m, at most an hour".to_owned())
}

pub(super) fn stop(how: BreakKind, value: Option<&str>) -> Result<BreakOff, String> {
    let place = match required_value(value)? {
        "head" if how == BreakKind::Truncate => return Err("needs a place in the body".to_owned()),
        "head" => BreakPoint::Head,
        "body" => BreakPoint::Byte(0),
        "content" => BreakPoint::Content,
        bytes => BreakPoint::Byte(
            bytes
                .parse()
                .map_err(|_| "needs head, body, content or a number of bytes".to_owned())?,
        ),
    };
    Ok(BreakOff { how, place })
}

pub(super) fn number(value: Option<&str>, min: usize, max: usize) -> Result<usize, String> {
    required_value(value)?
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("needs a number from {min} to {max}"))
}

pub(super) fn count(value: Option<&str>) -> Result<u64, String> {
    required_value(value)?
        .parse()
        .map_err(|_| "needs a number".to_owned())
}

pub(super) fn status(value: Option<&str>) -> Result<Status, String> {
    let value = required_value(value)?;
    let (code, more) = match value.split_once(':') {
        Some((code, more)) => (code, Some(more)),
        None => (value, None),
    };
    let code = code
        .parse()
        .ok()
        .filter(|code| (300..600).contains(code))
        .ok_or_else(|| "needs a status from 300 to 599".to_owned())?;
    let retry_after_s = match more {
        None => None,
        Some(more) => Some(
            more.strip_prefix("retry-after=")
                .and_then(|seconds| seconds.parse().ok())
                .ok_or_else(|| "only ':retry-after=SECONDS' may follow".to_owned())?,
        ),
    };
    Ok(Status {
        code,
        retry_after_s,
    })
}

pub(super) fn wrong_type(value: Option<&str>) -> Result<SubstituteReply, String> {
    match value {
        None | Some("html") => Ok(SubstituteReply::HtmlPage),
        Some("swapped") => Ok(SubstituteReply::Swapped),
        Some(_) => Err("is html or swapped".to_owned()),
    }
}

pub(super) fn vendor(
    value: Option<&str>,
    find: impl Fn(&str) -> Option<&'static VendorRefusal>,
) -> Result<SubstituteReply, String> {
    let refusal = find(required_value(value)?).ok_or_else(|| "knows no such vendor".to_owned())?;
    Ok(SubstituteReply::Refusal(refusal))
}

pub(super) fn names(value: Option<&str>) -> Result<Vec<String>, String> {
    Ok(required_value(value)?
        .split(',')
        .map(str::to_owned)
        .collect())
}

pub(super) fn usage(value: Option<&str>) -> Result<UsageFault, String> {
    Ok(match required_value(value)? {
        "zero" => UsageFault::Zero,
        "negative" => UsageFault::Negative,
        "huge" => UsageFault::Huge,
        "overflow" => UsageFault::Overflow,
        "string" => UsageFault::Text,
        "fraction" => UsageFault::Fraction,
        "shrinking" => UsageFault::Shrinking,
        "running" => UsageFault::Running,
        "on-finish" => UsageFault::OnFinish,
        "unasked" => UsageFault::Unasked,
        "costed" => UsageFault::Costed,
        _ => {
            return Err(
                "is zero, negative, huge, overflow, string, fraction, shrinking, \
                        running, on-finish, unasked or costed"
                    .to_owned(),
            );
        }
    })
}
