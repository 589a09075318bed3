//! A URL from a client or an upstream, parsed and checked before its name is resolved.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::error::UrlRefusal;

const URL_BYTES_MAX: usize = 2048;

/// Top-level names that stand for this machine or this network. They are refused whatever they
/// resolve to.
const LOCAL_NAMES: [&str; 3] = ["localhost", "local", "internal"];

/// A parsed URL. The address policy decides whether its addresses may be called.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalUrl {
    url: Url,
    host: UrlHost,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UrlHost {
    /// A lower-case name without a trailing dot.
    Name(String),
    Address(IpAddr),
}

impl ExternalUrl {
    /// Parses a URL and refuses a host name that cannot be public.
    pub fn parse(text: &str) -> Result<Self, UrlRefusal> {
        let link = Self::read(text)?;
        link.check_name()?;
        Ok(link)
    }

    /// Parses a URL and checks only its syntax. The name is checked when the URL is called.
    pub fn parse_any(text: &str) -> Result<Self, UrlRefusal> {
        Self::read(text)
    }

    /// The host of a URL, as a label for counters; `None` if the text is not a URL.
    pub fn host_of(text: &str) -> Option<String> {
        Self::read(text).ok().map(|link| match link.host {
            UrlHost::Name(name) => name,
            UrlHost::Address(address) => address.to_string(),
        })
    }

    /// Parses a URL as browsers do: `0x7f.1` and `2130706433` are addresses.
    pub(super) fn read(text: &str) -> Result<Self, UrlRefusal> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlRefusal::TooLong);
        }
        Self::take(Url::parse(text).map_err(|_| UrlRefusal::NotAUrl)?)
    }

    /// Resolves a `location` header relative to this URL.
    pub(super) fn join(&self, location: &str) -> Result<Self, UrlRefusal> {
        if location.len() > URL_BYTES_MAX {
            return Err(UrlRefusal::TooLong);
        }
        Self::take(self.url.join(location).map_err(|_| UrlRefusal::NotAUrl)?)
    }

    fn take(url: Url) -> Result<Self, UrlRefusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlRefusal::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlRefusal::Userinfo);
        }
        let host = match url.host().ok_or(UrlRefusal::NotAUrl)? {
            Host::Ipv4(address) => UrlHost::Address(address.into()),
            Host::Ipv6(address) => UrlHost::Address(address.into()),
            Host::Domain(name) => UrlHost::Name(name.strip_suffix('.').unwrap_or(name).to_owned()),
        };
        let port = url.port_or_known_default().filter(|port| *port > 0);
        Ok(Self {
            port: port.ok_or(UrlRefusal::NotAUrl)?,
            host,
            url,
        })
    }

    /// Refuses names that stand for this machine or this network.
    pub(super) fn check_name(&self) -> Result<(), UrlRefusal> {
        match &self.host {
            UrlHost::Name(name) if !is_public(name) => Err(UrlRefusal::Name),
            UrlHost::Name(_) | UrlHost::Address(_) => Ok(()),
        }
    }

    pub(super) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(super) fn host(&self) -> &UrlHost {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The value of the `host` header.
    pub(super) fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// Path and query for the request line. Both are ASCII without spaces.
    pub(super) fn target(&self) -> &str {
        let from = url::Position::BeforePath;
        &self.url[from..url::Position::AfterQuery]
    }
}

/// Paths and queries of external URLs often contain secrets, so they are not printed (K4).
impl fmt::Debug for ExternalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/…", self.url.scheme(), self.authority())
    }
}

/// Whether a name could be public.
fn is_public(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_single = last.len() == name.len();
    let has_gap = name.split('.').any(str::is_empty);
    !is_single && !has_gap && !LOCAL_NAMES.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_as_browsers_read_it() {
        for (text, host, port, authority, target) in [
            (
                "https://a.example/x?y=1#z",
                "a.example",
                443,
                "a.example",
                "/x?y=1",
            ),
            ("HTTP://A.Example", "a.example", 80, "a.example", "/"),
            (
                "http://a.example:8080/ü x",
                "a.example",
                8080,
                "a.example:8080",
                "/%C3%BC%20x",
            ),
            ("http://a.example.:80/", "a.example", 80, "a.example.", "/"),
            ("http://0x7f.1/", "127.0.0.1", 80, "127.0.0.1", "/"),
            ("http://2130706433/", "127.0.0.1", 80, "127.0.0.1", "/"),
            ("http://017700000001/", "127.0.0.1", 80, "127.0.0.1", "/"),
            ("http://127.1:81/", "127.0.0.1", 81, "127.0.0.1:81", "/"),
            ("http://１２７.0.0.1/", "127.0.0.1", 80, "127.0.0.1", "/"),
            (
                "http://[::FFFF:7f00:1]/",
                "::ffff:127.0.0.1",
                80,
                "[::ffff:7f00:1]",
                "/",
            ),
            (
                "https:\\\\a.example\\x",
                "a.example",
                443,
                "a.example",
                "/x",
            ),
            ("https://ex\nam.ple/", "exam.ple", 443, "exam.ple", "/"),
            (
                "https://b\u{fc}cher.example/",
                "xn--bcher-kva.example",
                443,
                "xn--bcher-kva.example",
                "/",
            ),
        ] {
            let link = ExternalUrl::parse(text).unwrap();
            let found = match link.host() {
                UrlHost::Name(name) => name.clone(),
                UrlHost::Address(address) => address.to_string(),
            };
            let found = (found.as_str(), link.port());
            assert_eq!(found, (host, port), "{text}");
            assert_eq!(
                (&*link.authority(), link.target()),
                (authority, target),
                "{text}"
            );
        }
    }

    #[test]
    fn urls_that_cannot_be_public_are_refused() {
        let long = format!("https://a.example/{}", "x".repeat(2048));
        for (text, why) in [
            (&*long, UrlRefusal::TooLong),
            ("", UrlRefusal::NotAUrl),
            ("a.example/x", UrlRefusal::NotAUrl),
            ("https://", UrlRefusal::NotAUrl),
            ("https://a.example:99999/", UrlRefusal::NotAUrl),
            ("https://a.example:0/", UrlRefusal::NotAUrl),
            ("http://[fe80::1%25eth0]/", UrlRefusal::NotAUrl),
            ("http://1.2.3.4.5/", UrlRefusal::NotAUrl),
            ("ftp://a.example/", UrlRefusal::Scheme),
            ("file:///etc/passwd", UrlRefusal::Scheme),
            ("gopher://a.example/", UrlRefusal::Scheme),
            ("data:image/png;base64,AAAA", UrlRefusal::Scheme),
            ("https://me@a.example/", UrlRefusal::Userinfo),
            ("https://:secret@a.example/", UrlRefusal::Userinfo),
            ("http://localhost/", UrlRefusal::Name),
            ("http://LOCALHOST./", UrlRefusal::Name),
            ("http://a.localhost/", UrlRefusal::Name),
            ("http://printer.local/", UrlRefusal::Name),
            ("http://metadata.google.internal/", UrlRefusal::Name),
            ("http://intranet/", UrlRefusal::Name),
            ("http://a..example/", UrlRefusal::Name),
        ] {
            assert_eq!(ExternalUrl::parse(text).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn a_location_is_read_from_where_it_was_found() {
        let link = ExternalUrl::parse("https://a.example/x/y?z").unwrap();
        for (location, authority, target) in [
            ("w", "a.example", "/x/w"),
            ("/w?v", "a.example", "/w?v"),
            ("//b.example/", "b.example", "/"),
            ("http://b.example:81/", "b.example:81", "/"),
        ] {
            let next = link.join(location).unwrap();
            assert_eq!((&*next.authority(), next.target()), (authority, target));
        }
        for (location, why) in [
            ("http://localhost/", UrlRefusal::Name),
            ("file:///etc/passwd", UrlRefusal::Scheme),
            ("//u:p@b.example/", UrlRefusal::Userinfo),
        ] {
            let next = link.join(location).and_then(|next| next.check_name());
            assert_eq!(next.unwrap_err(), why, "{location}");
        }
    }

    #[test]
    fn a_link_does_not_show_its_path() {
        let link = ExternalUrl::parse("https://a.example/secret?token=secret").unwrap();
        assert_eq!(format!("{link:?}"), "https://a.example/…");
    }
}
