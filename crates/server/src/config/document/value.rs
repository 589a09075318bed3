//! Reads single values: numbers, durations, sizes, addresses.
//!
//! An error is a phrase that follows the name of a setting. It never repeats a string of the file, because a secret may
//! have been put there by mistake.

use std::net::SocketAddr;
use std::time::Duration;

use ledger::{DecimalError, Micro};
use toml::de::DeValue;
use upstream::Network;

use super::section::kind_of;

/// 30 days. Sums of longer durations and clock readings could overflow.
const MILLIS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;

const LABEL_BYTES_MAX: usize = 64;

pub(crate) fn text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) if text.trim().is_empty() => Err("must not be empty".to_owned()),
        DeValue::String(text) => Ok(text.as_ref().to_owned()),
        other => Err(format!("must be a string, found {}", kind_of(other))),
    }
}

/// A name that is also used as a label of metrics and in log lines.
pub(crate) fn label(value: &DeValue<'_>) -> Result<String, String> {
    let name = text(value)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() > LABEL_BYTES_MAX || !name.chars().all(plain) {
        return Err("must be at most 64 letters, digits and any of `-_.`".to_owned());
    }
    Ok(name)
}

pub(crate) fn flag(value: &DeValue<'_>) -> Result<bool, String> {
    match value {
        DeValue::Boolean(flag) => Ok(*flag),
        other => Err(format!("must be true or false, found {}", kind_of(other))),
    }
}

/// A whole number that fits `T`, 0 included.
pub(crate) fn count<T: TryFrom<u64>>(value: &DeValue<'_>) -> Result<T, String> {
    let DeValue::Integer(digits) = value else {
        return Err(format!("must be a whole number, found {}", kind_of(value)));
    };
    if digits.as_str().starts_with('-') {
        return Err("must not be negative".to_owned());
    }
    u64::from_str_radix(digits.as_str(), digits.radix())
        .ok()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| "is too large".to_owned())
}

pub(crate) fn positive<T: TryFrom<u64> + Default + PartialEq>(
    value: &DeValue<'_>,
) -> Result<T, String> {
    match count::<T>(value)? {
        zero if zero == T::default() => Err("must be above 0".to_owned()),
        number => Ok(number),
    }
}

/// An amount of credits, as a decimal text or a whole number; not below 0.
pub(crate) fn credits(value: &DeValue<'_>) -> Result<Micro, String> {
    let text = match value {
        DeValue::String(text) => text.as_ref().to_owned(),
        DeValue::Integer(_) => count::<u64>(value)?.to_string(),
        other => {
            let found = kind_of(other);
            return Err(format!(
                "must be a decimal text such as \"2.5\", found {found}"
            ));
        }
    };
    let amount: Micro = text
        .parse()
        .map_err(|error: DecimalError| error.to_string())?;
    if amount.is_negative() {
        return Err("must not be negative".to_owned());
    }
    Ok(amount)
}

/// A duration above 0, given in milliseconds.
pub(crate) fn millis(value: &DeValue<'_>) -> Result<Duration, String> {
    match millis_or_zero(value)? {
        Duration::ZERO => Err("must be above 0".to_owned()),
        time => Ok(time),
    }
}

/// A duration given in milliseconds, where 0 has a special meaning.
pub(crate) fn millis_or_zero(value: &DeValue<'_>) -> Result<Duration, String> {
    match count::<u64>(value)? {
        long if long > MILLIS_MAX => Err(format!("must be at most {MILLIS_MAX} (30 days)")),
        millis => Ok(Duration::from_millis(millis)),
    }
}

pub(crate) fn socket(value: &DeValue<'_>) -> Result<SocketAddr, String> {
    text(value)?.parse().map_err(|_| {
        "must be an address and a port, such as 127.0.0.1:8080 or [::1]:8080".to_owned()
    })
}

/// The URL of a service: `http` or `https`, a host, and optionally a port and a path.
pub(crate) fn web_address(value: &DeValue<'_>) -> Result<String, String> {
    let text = text(value)?;
    let shape = || "must be an http:// or https:// address".to_owned();
    let uri: http::Uri = text.parse().map_err(|_| shape())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || text.contains('#') {
        return Err(shape());
    }
    let authority = uri.authority().ok_or_else(shape)?;
    if authority.as_str().contains('@') {
        return Err("must not hold a user name or password".to_owned());
    }
    if authority.host().is_empty() {
        return Err(shape());
    }
    let has_port = authority.as_str().len() > authority.host().len();
    if has_port && authority.port_u16().is_none_or(|port| port == 0) {
        return Err("must have a port from 1 to 65535".to_owned());
    }
    if uri.query().is_some() {
        return Err("must not hold a query".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// The origin of a web page in the form that browsers send, such as `https://app.example.com`, or `*` for all.
pub(crate) fn web_origin(value: &DeValue<'_>) -> Result<String, String> {
    if text(value)? == "*" {
        return Ok("*".to_owned());
    }
    let origin = web_address(value)?.to_ascii_lowercase();
    let has_path = origin.split("//").nth(1).is_some_and(|it| it.contains('/'));
    if has_path {
        return Err("must not hold a path: an origin is a scheme, a host and a port".to_owned());
    }
    Ok(origin)
}

/// A range of addresses, such as `10.0.0.0/8`.
pub(crate) fn network(value: &DeValue<'_>) -> Result<Network, String> {
    text(value)?.parse()
}

/// One of a few words. The error names them.
pub(crate) fn one_of<T: Copy>(value: &DeValue<'_>, words: &[(&str, T)]) -> Result<T, String> {
    let given = text(value)?;
    words
        .iter()
        .find(|(word, _)| *word == given)
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            format!("must be {}", known.join(" or "))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(
        text: &str,
        reader: impl Fn(&DeValue<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        reader(DeValue::parse(text).unwrap().get_ref())
    }

    #[test]
    fn numbers_know_their_bounds() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("7", Ok(7)),
            ("1_000", Ok(1000)),
            ("0xff", Ok(255)),
            ("-1", Err("must not be negative")),
            ("4294967296", Err("is too large")),
            ("99999999999999999999999", Err("is too large")),
            (
                "1.5",
                Err("must be a whole number, found a number with a fraction"),
            ),
            ("\"7\"", Err("must be a whole number, found a string")),
        ] {
            assert_eq!(
                read(text, count::<u32>),
                expected.map_err(str::to_owned),
                "{text}"
            );
        }
        assert_eq!(
            read("0", positive::<u32>),
            Err("must be above 0".to_owned())
        );
    }

    #[test]
    fn credits_are_exact_decimals() {
        for (text, expected) in [
            ("\"10\"", Ok(10_000_000)),
            ("\"0.000001\"", Ok(1)),
            ("25", Ok(25_000_000)),
            ("0", Ok(0)),
            ("-1", Err("must not be negative")),
            ("\"-0.5\"", Err("must not be negative")),
            (
                "0.5",
                Err("must be a decimal text such as \"2.5\", found a number with a fraction"),
            ),
        ] {
            let read = read(text, credits).map(Micro::get);
            assert_eq!(read, expected.map_err(str::to_owned), "{text}");
        }
        for text in ["\"ten\"", "\"0.0000001\"", "\"99999999999999\""] {
            assert!(read(text, credits).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_above_zero_and_below_thirty_days() {
        assert_eq!(read("1500", millis), Ok(Duration::from_millis(1500)));
        assert_eq!(read("0", millis_or_zero), Ok(Duration::ZERO));
        for (text, message) in [
            ("0", "must be above 0"),
            ("2592000001", "must be at most 2592000000 (30 days)"),
        ] {
            assert_eq!(read(text, millis), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn web_addresses_are_plain() {
        let shape = "must be an http:// or https:// address";
        for (text, expected) in [
            (
                "https://api.example.com/v1",
                Ok("https://api.example.com/v1"),
            ),
            ("http://127.0.0.1:9/", Ok("http://127.0.0.1:9")),
            ("http://[::1]:9/v1/", Ok("http://[::1]:9/v1")),
            ("api.example.com", Err(shape)),
            ("ftp://example.com", Err(shape)),
            ("https://", Err(shape)),
            ("https://exa mple.com", Err(shape)),
            ("https://example.com/#top", Err(shape)),
            (
                "https://me:pass@example.com",
                Err("must not hold a user name or password"),
            ),
            ("https://example.com/?a=1", Err("must not hold a query")),
            (
                "https://example.com:0",
                Err("must have a port from 1 to 65535"),
            ),
            (
                "https://example.com:",
                Err("must have a port from 1 to 65535"),
            ),
            (
                "https://example.com:99999",
                Err("must have a port from 1 to 65535"),
            ),
        ] {
            assert_eq!(
                read(&format!("{text:?}"), web_address),
                expected.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        }
    }
}
