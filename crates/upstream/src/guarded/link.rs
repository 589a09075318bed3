//! A URL that someone else gave us, read once and judged by its words.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::error::Refusal;

/// The longest URL that is read.
const URL_BYTES_MAX: usize = 2048;

/// Names that mean this machine or this network, whatever they resolve to.
const LOCAL_NAMES: [&str; 3] = ["localhost", "local", "internal"];

/// A URL that may be tried: whether its addresses may be called is for the policy to say.
#[derive(Clone, PartialEq, Eq)]
pub struct Link {
    url: Url,
    host: LinkHost,
    port: u16,
}

/// Whom a link names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkHost {
    /// Lower case, without a dot at its end.
    Name(String),
    Address(IpAddr),
}

impl Link {
    /// Reads a URL that must be a public one.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let link = Self::read(text)?;
        link.judge_name()?;
        Ok(link)
    }

    /// Reads a URL by its syntax alone; whether its name is public is judged when it is called.
    pub fn parse_any(text: &str) -> Result<Self, Refusal> {
        Self::read(text)
    }

    /// Whom a URL names, for counting; nothing when it cannot be read.
    pub fn host_of(text: &str) -> Option<String> {
        Self::read(text).ok().map(|link| match link.host {
            LinkHost::Name(name) => name,
            LinkHost::Address(address) => address.to_string(),
        })
    }

    /// Reads a URL by the rules of browsers: `0x7f.1` and `2130706433` are addresses here as
    /// everywhere else.
    pub(super) fn read(text: &str) -> Result<Self, Refusal> {
        if text.len() > URL_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        Self::take(Url::parse(text).map_err(|_| Refusal::NotAUrl)?)
    }

    /// Where a `location` leads from here.
    pub(super) fn join(&self, location: &str) -> Result<Self, Refusal> {
        if location.len() > URL_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        Self::take(self.url.join(location).map_err(|_| Refusal::NotAUrl)?)
    }

    fn take(url: Url) -> Result<Self, Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Userinfo);
        }
        let host = match url.host().ok_or(Refusal::NotAUrl)? {
            Host::Ipv4(address) => LinkHost::Address(address.into()),
            Host::Ipv6(address) => LinkHost::Address(address.into()),
            Host::Domain(name) => LinkHost::Name(name.strip_suffix('.').unwrap_or(name).to_owned()),
        };
        let port = url.port_or_known_default().filter(|port| *port > 0);
        Ok(Self {
            port: port.ok_or(Refusal::NotAUrl)?,
            host,
            url,
        })
    }

    /// Refuses names that mean this machine or this network.
    pub(super) fn judge_name(&self) -> Result<(), Refusal> {
        match &self.host {
            LinkHost::Name(name) if !is_public(name) => Err(Refusal::Name),
            LinkHost::Name(_) | LinkHost::Address(_) => Ok(()),
        }
    }

    pub(super) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(super) fn host(&self) -> &LinkHost {
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

    /// Path and query as they stand in the request line: plain ASCII without spaces.
    pub(super) fn target(&self) -> &str {
        let from = url::Position::BeforePath;
        &self.url[from..url::Position::AfterQuery]
    }
}

/// Paths and queries of others' addresses often hold their secrets (K4).
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/…", self.url.scheme(), self.authority())
    }
}

/// Whether a name could be one of the public network.
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
            let link = Link::parse(text).unwrap();
            let found = match link.host() {
                LinkHost::Name(name) => name.clone(),
                LinkHost::Address(address) => address.to_string(),
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
    fn what_is_no_public_url_is_refused_by_its_words() {
        let long = format!("https://a.example/{}", "x".repeat(2048));
        for (text, why) in [
            (&*long, Refusal::TooLong),
            ("", Refusal::NotAUrl),
            ("a.example/x", Refusal::NotAUrl),
            ("https://", Refusal::NotAUrl),
            ("https://a.example:99999/", Refusal::NotAUrl),
            ("https://a.example:0/", Refusal::NotAUrl),
            ("http://[fe80::1%25eth0]/", Refusal::NotAUrl),
            ("http://1.2.3.4.5/", Refusal::NotAUrl),
            ("ftp://a.example/", Refusal::Scheme),
            ("file:///etc/passwd", Refusal::Scheme),
            ("gopher://a.example/", Refusal::Scheme),
            ("data:image/png;base64,AAAA", Refusal::Scheme),
            ("https://me@a.example/", Refusal::Userinfo),
            ("https://:secret@a.example/", Refusal::Userinfo),
            ("http://localhost/", Refusal::Name),
            ("http://LOCALHOST./", Refusal::Name),
            ("http://a.localhost/", Refusal::Name),
            ("http://printer.local/", Refusal::Name),
            ("http://metadata.google.internal/", Refusal::Name),
            ("http://intranet/", Refusal::Name),
            ("http://a..example/", Refusal::Name),
        ] {
            assert_eq!(Link::parse(text).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn a_location_is_read_from_where_it_was_found() {
        let link = Link::parse("https://a.example/x/y?z").unwrap();
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
            ("http://localhost/", Refusal::Name),
            ("file:///etc/passwd", Refusal::Scheme),
            ("//u:p@b.example/", Refusal::Userinfo),
        ] {
            let next = link.join(location).and_then(|next| next.judge_name());
            assert_eq!(next.unwrap_err(), why, "{location}");
        }
    }

    #[test]
    fn a_link_does_not_show_its_path() {
        let link = Link::parse("https://a.example/secret?token=secret").unwrap();
        assert_eq!(format!("{link:?}"), "https://a.example/…");
    }
}
