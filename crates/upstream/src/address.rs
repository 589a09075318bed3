//! The address of an upstream, parsed from its `base_url`.

use http::Uri;
use http::uri::Scheme;

use crate::error::ChannelError;

/// A checked `base_url`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) tls: bool,
    /// A name or an IP address. IPv6 addresses have no brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The value of the `host` header: as configured, without a default port.
    pub(crate) authority: String,
    /// The path without a trailing slash; empty for a bare host.
    pub(crate) path: String,
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, ChannelError> {
        let refuse = |why| Err(ChannelError::BaseUrl(without_userinfo(text), why));
        let Ok(uri) = text.parse::<Uri>() else {
            return refuse("not a URL");
        };
        let tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return refuse("must begin with http:// or https://"),
        };
        let Some(authority) = uri.authority() else {
            return refuse("has no host");
        };
        if authority.as_str().contains('@') {
            return refuse("must not hold a user name or password: use `credential`");
        }
        if uri.query().is_some() || text.contains('#') {
            return refuse("must not hold a query or a fragment");
        }
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if bare.is_empty() {
            return refuse("has no host");
        }
        let default_port = if tls { 443 } else { 80 };
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None if authority.as_str().len() > host.len() => return refuse("has a bad port"),
            None => default_port,
        };
        if port == 0 {
            return refuse("has a bad port");
        }
        Ok(Self {
            tls,
            host: bare.to_owned(),
            port,
            authority: if port == default_port {
                host.to_owned()
            } else {
                format!("{host}:{port}")
            },
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// The path without a trailing `/v1`. The paths `/v1/…` and `/v1beta/…` are appended to it.
    pub(crate) fn root(&self) -> &str {
        self.path.strip_suffix("/v1").unwrap_or(&self.path)
    }
}

/// The URL without credentials, for error messages.
fn without_userinfo(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((_, host)) = authority.rsplit_once('@') else {
        return text.to_owned();
    };
    format!("{scheme}://***@{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::{Address, ChannelError};

    #[test]
    fn a_base_url_is_read_into_its_parts() {
        for (text, tls, host, port, authority, path) in [
            (
                "https://api.openai.com/v1",
                true,
                "api.openai.com",
                443,
                "api.openai.com",
                "/v1",
            ),
            (
                "https://api.openai.com:443/v1/",
                true,
                "api.openai.com",
                443,
                "api.openai.com",
                "/v1",
            ),
            (
                "http://127.0.0.1:9000",
                false,
                "127.0.0.1",
                9000,
                "127.0.0.1:9000",
                "",
            ),
            (
                "http://[::1]:9000/a/b//",
                false,
                "::1",
                9000,
                "[::1]:9000",
                "/a/b",
            ),
            ("http://host", false, "host", 80, "host", ""),
            ("http://host:443/", false, "host", 443, "host:443", ""),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(
                (
                    address.tls,
                    address.host.as_str(),
                    address.port,
                    address.authority.as_str(),
                    address.path.as_str()
                ),
                (tls, host, port, authority, path),
                "{text}"
            );
        }
    }

    #[test]
    fn a_url_that_cannot_be_called_is_refused_in_clear_words() {
        for (text, why) in [
            ("api.openai.com", "must begin with http:// or https://"),
            ("ftp://host", "must begin with http:// or https://"),
            ("not a url", "not a URL"),
            ("https://host/v1?x=1", "must not hold a query or a fragment"),
            ("https://host/v1#x", "must not hold a query or a fragment"),
            ("https://host:0/", "has a bad port"),
        ] {
            let Err(ChannelError::BaseUrl(_, found)) = Address::parse(text) else {
                panic!("{text} was accepted");
            };
            assert_eq!(found, why, "{text}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        for text in ["https://me:hunter2@host/v1", "https://me:hunter2@ho st/v1"] {
            let shown = Address::parse(text).unwrap_err().to_string();
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn the_root_is_the_base_without_its_version() {
        for (text, root) in [
            ("http://h/v1", ""),
            ("http://h/sim/v1/", "/sim"),
            ("http://h/api/v3", "/api/v3"),
            ("http://h", ""),
        ] {
            assert_eq!(Address::parse(text).unwrap().root(), root, "{text}");
        }
    }
}
