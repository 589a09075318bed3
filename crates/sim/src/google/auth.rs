//! Authenticates a request: accepts any key except the refused ones and those without credit. The key is in a header,
//! in the query, or a bearer token.

use super::Refusal;
use crate::settings::Settings;
use http::header::AUTHORIZATION;
use http::request::Parts;

const KEY_HEADER: &str = "x-goog-api-key";

pub(crate) fn authorise(parts: &Parts, settings: &Settings) -> Result<(), Refusal> {
    let key = key_of(parts).ok_or_else(Refusal::no_key)?;
    if settings.refuses(key) {
        return Err(Refusal::bad_key(key));
    }
    if settings.has_no_credit(key) {
        return Err(Refusal::no_money());
    }
    Ok(())
}

fn key_of(parts: &Parts) -> Option<&str> {
    let header = |name: &str| parts.headers.get(name)?.to_str().ok();
    let bearer = header(AUTHORIZATION.as_str())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key.trim());
    let query = parts
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix("key="));
    [header(KEY_HEADER), query, bearer]
        .into_iter()
        .flatten()
        .find(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn a_key_is_taken_from_wherever_it_stands() {
        for (uri, header, value, status) in [
            ("/", KEY_HEADER, "k", None),
            ("/", "authorization", "Bearer k", None),
            ("/?alt=sse&key=k", "x-other", "", None),
            ("/", KEY_HEADER, "sim-bad-key", Some(400)),
            ("/?key=sim-bad-key", "x-other", "", Some(400)),
            ("/", "authorization", "Bearer sim-poor-key", Some(429)),
            ("/?key=", KEY_HEADER, "", Some(403)),
            ("/", "authorization", "Basic k", Some(403)),
        ] {
            let request = Request::get(uri).header(header, value).body(()).unwrap();
            let (parts, ()) = request.into_parts();
            let refused = authorise(&parts, &Settings::default()).err();
            let found = refused.map(|refusal| refusal.status.as_u16());
            assert_eq!(found, status, "{uri} {header}: {value}");
        }
    }
}
