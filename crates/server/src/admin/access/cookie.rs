//! The session cookie, and the checks that keep other sites from using it.
//!
//! A browser would send the cookie with every request to this address, even if another site caused the request. So the
//! cookie is `SameSite=Strict`, and requests that name another origin are refused. A request that changes something or
//! opens a socket also needs the session's CSRF token, which only pages of this origin can read.

use http::header::{COOKIE, HOST, ORIGIN, UPGRADE};
use http::{HeaderMap, Method};
use store::Digest;
use subtle::ConstantTimeEq as _;

use super::check::SESSION_LIFETIME;
use crate::admin::api::error::ApiError;

const NAME: &str = "tollgate_admin";

/// The CSRF token is the digest of this prefix and the session's secret.
const CSRF: &str = "tollgate csrf ";

/// The secret of a session, which the cookie carries.
#[derive(Clone)]
pub(crate) struct SessionCookie(String);

impl std::fmt::Debug for SessionCookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl SessionCookie {
    pub(super) fn fresh() -> Self {
        let (one, two): (String, String) = (engine::ids::fresh("tgs_"), engine::ids::fresh(""));
        Self(one + &two)
    }

    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(COOKIE).iter();
        let mut pairs = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let (_, secret) = pairs.find(|(name, _)| *name == NAME)?;
        Some(Self(secret.to_owned()))
    }

    /// The digest by which the store finds the session.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    /// The CSRF token. It is derived from the secret, so that every node can compute it, and does not reveal the
    /// secret.
    pub(crate) fn csrf(&self) -> String {
        let digest = Digest::of(format!("{CSRF}{}", self.0).as_bytes());
        digest
            .as_bytes()
            .iter()
            .fold(String::new(), |mut text, byte| {
                use std::fmt::Write as _;
                let _ = write!(text, "{byte:02x}");
                text
            })
    }

    /// Refuses a request that another site may have caused.
    pub(super) fn check_request(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(), ApiError> {
        if !is_same_origin(headers) {
            return Err(ApiError::forged("Another site has caused this request."));
        }
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if reads && !headers.contains_key(UPGRADE) {
            return Ok(());
        }
        let csrf = self.csrf();
        let mut given = headers
            .get("x-csrf-token")
            .map(http::HeaderValue::as_bytes)
            .into_iter()
            .chain(csrf_of_socket(headers));
        if given.any(|given| bool::from(given.ct_eq(csrf.as_bytes()))) {
            return Ok(());
        }
        let message = "A request of a session that changes something needs its `x-csrf-token`.";
        Err(ApiError::forged(message).with_param("x-csrf-token"))
    }
}

/// The CSRF tokens among the subprotocols of a WebSocket handshake: `csrf.<token>`. Browsers cannot set other headers
/// of a handshake.
fn csrf_of_socket(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let values = headers.get_all("sec-websocket-protocol").iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|offered| offered.trim().strip_prefix("csrf."))
        .map(str::as_bytes)
}

/// Whether the headers of a request name neither another site nor another origin. Requests that no page sent have no
/// such headers, so they pass.
pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    let site = headers
        .get("sec-fetch-site")
        .map(http::HeaderValue::as_bytes);
    if site.is_some_and(|site| site == b"cross-site") {
        return false;
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"));
    matches!((origin, host), (Some((_, origin)), Some(host)) if origin.eq_ignore_ascii_case(host))
}

/// Whether the browser reaches us over TLS, according to its origin.
pub(crate) fn is_secure_origin(headers: &HeaderMap) -> bool {
    headers
        .get(ORIGIN)
        .is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// The value of the `set-cookie` header that sets the cookie.
pub(crate) fn new_cookie(cookie: &SessionCookie, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    let seconds = SESSION_LIFETIME.as_secs();
    format!(
        "{NAME}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
        cookie.0
    )
}

/// The value of the `set-cookie` header that removes the cookie.
pub(crate) fn expired_cookie() -> String {
    format!("{NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = http::HeaderName::from_static(name);
            (name, HeaderValue::from_str(value).unwrap())
        });
        pairs.collect()
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        for (value, secret) in [
            ("tollgate_admin=abc", Some("abc")),
            ("a=b; tollgate_admin=abc; c=d", Some("abc")),
            ("xtollgate_admin=abc", None),
            ("tollgate_admin", None),
        ] {
            let found = SessionCookie::of(&headers(&[("cookie", value)]));
            assert_eq!(found.map(|cookie| cookie.0).as_deref(), secret, "{value}");
        }
    }

    #[test]
    fn only_pages_of_the_same_address_are_of_the_same_origin() {
        for (pairs, same) in [
            (vec![("host", "127.0.0.1:8081")], true),
            (vec![("host", "gw:1"), ("origin", "http://gw:1")], true),
            (vec![("host", "gw"), ("origin", "https://GW")], true),
            (vec![("host", "gw:1"), ("origin", "http://gw:2")], false),
            (vec![("host", "gw"), ("origin", "null")], false),
            (
                vec![("host", "gw"), ("origin", "http://evil.example")],
                false,
            ),
            (
                vec![("host", "gw"), ("sec-fetch-site", "cross-site")],
                false,
            ),
            (
                vec![("host", "gw"), ("sec-fetch-site", "same-origin")],
                true,
            ),
            (vec![("origin", "http://gw")], false),
        ] {
            assert_eq!(is_same_origin(&headers(&pairs)), same, "{pairs:?}");
        }
    }

    #[test]
    fn a_change_needs_the_csrf_token_of_its_session() {
        let cookie = SessionCookie::fresh();
        let csrf = cookie.csrf();
        let right = headers(&[("x-csrf-token", &csrf)]);
        let other = SessionCookie::fresh().csrf();
        for (method, headers, passes) in [
            (Method::GET, HeaderMap::new(), true),
            (Method::POST, HeaderMap::new(), false),
            (Method::POST, headers(&[("x-csrf-token", &other)]), false),
            (Method::DELETE, right.clone(), true),
            (Method::PATCH, right, true),
        ] {
            let checked = cookie.check_request(&method, &headers);
            assert_eq!(checked.is_ok(), passes, "{method} {headers:?}");
        }
        assert!(!csrf.contains(&cookie.0) && !new_cookie(&cookie, true).contains(&csrf));
    }
}
