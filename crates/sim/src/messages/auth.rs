//! Checks the credential and the protocol version of a request.

use super::refusal::Refusal;
use crate::settings::Settings;
use http::HeaderMap;
use http::header::AUTHORIZATION;

/// The protocol versions that the simulator distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// `2023-06-01` and older.
    Old,
    /// `2026-10-21`, which has no sampling members.
    Current,
}

/// Checks the credential: `x-api-key`, or else a bearer token.
pub(super) fn authorise(headers: &HeaderMap, settings: &Settings) -> Result<(), Refusal> {
    let key = text(headers, "x-api-key")
        .or_else(|| bearer(text(headers, AUTHORIZATION.as_str())?))
        .filter(|key| !key.is_empty())
        .ok_or_else(Refusal::no_key)?;
    if settings.refuses(key) {
        return Err(Refusal::bad_key(key));
    }
    if settings.has_no_credit(key) {
        return Err(Refusal::no_money());
    }
    Ok(())
}

pub(super) fn version(headers: &HeaderMap) -> Result<Version, Refusal> {
    match text(headers, "anthropic-version") {
        None => Err(Refusal::at("anthropic-version", "header is required")),
        Some("2023-01-01" | "2023-06-01") => Ok(Version::Old),
        Some("2026-10-21") => Ok(Version::Current),
        Some(other) => Err(Refusal::at(
            "anthropic-version",
            format!("\"{other}\" is not a valid version"),
        )),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_key_comes_in_either_header_and_its_own_wins() {
        for (pairs, status) in [
            (&[("x-api-key", "k")][..], None),
            (&[("authorization", "Bearer k")], None),
            (
                &[
                    ("x-api-key", "sim-bad-key"),
                    ("authorization", "Bearer good"),
                ],
                Some(401),
            ),
            (&[("authorization", "Bearer sim-poor-key")], Some(402)),
            (&[("authorization", "Basic k")], Some(401)),
            (&[], Some(401)),
        ] {
            let refused = authorise(&headers(pairs), &Settings::default()).err();
            let found = refused.map(|refusal| refusal.status.as_u16());
            assert_eq!(found, status, "{pairs:?}");
        }
    }

    #[test]
    fn the_version_must_be_named_and_known() {
        for (value, expected) in [
            ("2023-06-01", Some(Version::Old)),
            ("2026-10-21", Some(Version::Current)),
            ("1999-01-01", None),
        ] {
            let found = version(&headers(&[("anthropic-version", value)]));
            assert_eq!(found.ok(), expected, "{value}");
        }
        assert!(version(&headers(&[])).is_err());
    }
}
