//! Finds the API key of a request, in the places where the clients of its endpoint family put it.

use http::{HeaderMap, Uri, header};
use protocol::Family;

/// Why a request has no usable key. Clients get the same 401 in each case.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    Missing,
    Malformed,
    /// The request has two different credentials, and we must not choose which one is billed.
    Conflicting,
}

/// The name that SDKs use for the header, and the name that our API uses.
const GOOGLE_HEADERS: [&str; 2] = ["x-goog-api-key", "x-alpha-api-key"];

pub(crate) fn find<'r>(
    family: Family,
    headers: &'r HeaderMap,
    uri: &'r Uri,
) -> Result<&'r str, NoKey> {
    let mut found: Option<&str> = None;
    let mut offer = |key: &'r str| match found {
        _ if key.is_empty() => Err(NoKey::Malformed),
        Some(other) if other != key => Err(NoKey::Conflicting),
        _ => {
            found = Some(key);
            Ok(())
        }
    };
    for value in headers.get_all(header::AUTHORIZATION) {
        offer(bearer(value.to_str().map_err(|_| NoKey::Malformed)?).ok_or(NoKey::Malformed)?)?;
    }
    for name in key_headers(family) {
        for value in headers.get_all(*name) {
            offer(value.to_str().map_err(|_| NoKey::Malformed)?.trim())?;
        }
    }
    if family == Family::Google {
        for pair in uri.query().unwrap_or_default().split('&') {
            if let Some(key) = pair.strip_prefix("key=") {
                offer(key)?;
            }
        }
    }
    found.ok_or(NoKey::Missing)
}

fn key_headers(family: Family) -> &'static [&'static str] {
    match family {
        Family::OpenAi => &[],
        Family::Messages => &["x-api-key"],
        Family::Google | Family::Interactions => &GOOGLE_HEADERS,
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Family, headers, target, and the expected key.
    type Case<'a> = (
        Family,
        &'a [(&'a str, &'a str)],
        &'a str,
        Result<&'a str, NoKey>,
    );

    #[test]
    fn each_family_takes_its_own_credentials() {
        use Family::{Google, Interactions, Messages, OpenAi};
        use NoKey::{Conflicting, Malformed, Missing};
        // A constant, so that the borrows below live as long as the table.
        const BEARER: (&str, &str) = ("authorization", "Bearer k1");
        let table: &[Case<'_>] = &[
            (OpenAi, &[BEARER], "/", Ok("k1")),
            (OpenAi, &[("authorization", "bearer  k1 ")], "/", Ok("k1")),
            (OpenAi, &[], "/", Err(Missing)),
            (
                OpenAi,
                &[("authorization", "Basic k1")],
                "/",
                Err(Malformed),
            ),
            (OpenAi, &[("authorization", "Bearer")], "/", Err(Malformed)),
            (OpenAi, &[("authorization", "Bearer ")], "/", Err(Malformed)),
            (OpenAi, &[("x-api-key", "k1")], "/", Err(Missing)),
            (OpenAi, &[], "/?key=k1", Err(Missing)),
            (
                OpenAi,
                &[BEARER, ("authorization", "Bearer k2")],
                "/",
                Err(Conflicting),
            ),
            (Messages, &[("x-api-key", "k1")], "/", Ok("k1")),
            (Messages, &[("x-api-key", "k1"), BEARER], "/", Ok("k1")),
            (
                Messages,
                &[("x-api-key", "k2"), BEARER],
                "/",
                Err(Conflicting),
            ),
            (Google, &[("x-goog-api-key", "k1")], "/", Ok("k1")),
            (Google, &[("x-alpha-api-key", "k1")], "/", Ok("k1")),
            (Google, &[], "/?alt=sse&key=k1", Ok("k1")),
            (Google, &[BEARER], "/?key=k2", Err(Conflicting)),
            (Interactions, &[("x-goog-api-key", "k1")], "/", Ok("k1")),
            (Interactions, &[], "/?key=k1", Err(Missing)),
        ];
        for (family, pairs, uri, expected) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in *pairs {
                headers.append(*name, value.parse().unwrap());
            }
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(
                find(*family, &headers, &uri),
                *expected,
                "{family:?} {pairs:?} {uri}"
            );
        }
    }
}
