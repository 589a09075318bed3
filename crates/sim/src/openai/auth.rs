//! Authenticates a request: accepts any key except the refused ones and those without credit.

use super::Refusal;
use crate::settings::Settings;
use http::HeaderMap;
use http::header::AUTHORIZATION;

pub(crate) fn authorise(headers: &HeaderMap, settings: &Settings) -> Result<(), Refusal> {
    let key = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(bearer)
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

fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn any_key_but_the_known_bad_ones_is_let_in() {
        for (value, status) in [
            (Some("Bearer sk-1"), None),
            (Some("bearer sk-1"), None),
            (Some("Bearer sim-bad-key"), Some(401)),
            (Some("Bearer sim-poor-key"), Some(429)),
            (Some("Bearer "), Some(401)),
            (Some("Basic abc"), Some(401)),
            (None, Some(401)),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            }
            let refused = authorise(&headers, &Settings::default()).err();
            assert_eq!(
                refused.map(|refusal| refusal.status.as_u16()),
                status,
                "{value:?}"
            );
        }
    }
}
