//! Serves files for browsers that are built into the binary: the console and the callers' page.
//!
//! A set of files has one version, the hash of all of them. Files are served below a path that contains the version, so
//! browsers may cache them forever, and modules can import each other by relative paths. The page that names the
//! version is revalidated each time, by its `ETag`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sha2::{Digest, Sha256};

/// The content security policy of pages. Pages load only from their own origin; pictures and media also from `data:`
/// and `blob:`. They have no inline scripts or styles and no form targets, and cannot be framed.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data: blob:; media-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Lists the files of a folder as `(path, bytes)`, for [`Assets::new`]. The folder is relative to the crate.
#[macro_export]
macro_rules! embedded {
    ($folder:literal: $($path:literal),+ $(,)?) => {
        &[$((
            $path,
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $folder, "/", $path)) as &'static [u8],
        )),+]
    };
}

/// A set of files with one version.
#[derive(Debug)]
pub struct Assets {
    version: String,
    by_path: HashMap<&'static str, Asset>,
}

impl Assets {
    /// Hashes and compresses the files. This is slow, so the result should be kept.
    pub fn new(files: &[(&'static str, &'static [u8])]) -> Self {
        let mut all = Sha256::new();
        for (path, bytes) in files {
            all.update(path);
            all.update([0]);
            all.update(Sha256::digest(bytes));
        }
        let asset = |(path, bytes): &(&'static str, &'static [u8])| {
            (
                *path,
                Asset::new(content_type(path), Bytes::from_static(bytes)),
            )
        };
        Self {
            version: hex(&all.finalize()),
            by_path: files.iter().map(asset).collect(),
        }
    }

    /// The hash of all files, which changes whenever one of them does.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file at a path relative to the folder, such as `ui/table.js`.
    pub fn find(&self, path: &str) -> Option<&Asset> {
        self.by_path.get(path)
    }

    /// The file at a path that begins with the version, such as `1b2c…/ui/table.js`. `None` for any other version.
    pub fn find_versioned(&self, path: &str) -> Option<&Asset> {
        let path = path.strip_prefix(self.version.as_str())?;
        self.find(path.strip_prefix('/')?)
    }
}

/// How long a browser may use a file without requesting it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// The path contains the version, so the content never changes.
    Forever,
    /// The browser asks each time, and gets a 304 if nothing has changed.
    Checked,
}

/// One file: its content, plain and compressed.
#[derive(Debug, Clone)]
pub struct Asset {
    content_type: HeaderValue,
    etag: HeaderValue,
    plain: Bytes,
    /// `None` if compression does not make it smaller.
    gzip: Option<Bytes>,
}

impl Asset {
    /// A file of this type. Also used for pages that are generated at run time.
    pub fn new(content_type: &'static str, plain: Bytes) -> Self {
        // The tag is weak, because it is the same for both encodings of the content.
        let etag = format!("W/\"{}\"", hex(&Sha256::digest(&plain)));
        Self {
            content_type: HeaderValue::from_static(content_type),
            // Hexadecimal digits in quotes are always a valid header value.
            etag: HeaderValue::try_from(etag)
                .unwrap_or_else(|_| HeaderValue::from_static("W/\"\"")),
            gzip: compressed(&plain).filter(|gzip| gzip.len() < plain.len()),
            plain,
        }
    }

    /// The content as text; empty if it is not UTF-8.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.plain).unwrap_or_default()
    }

    /// The answer to a request with these headers: the content in an encoding that the client accepts, or 304 if the
    /// client already has it.
    pub fn answer(&self, request: &HeaderMap, lifetime: Lifetime) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        let headers = response.headers_mut();
        headers.insert(ETAG, self.etag.clone());
        headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
        let cache = match lifetime {
            Lifetime::Forever => "public, max-age=31536000, immutable",
            Lifetime::Checked => "no-cache",
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CONTENT_TYPE, self.content_type.clone());
        if self.content_type.as_bytes().starts_with(b"text/html") {
            write_page_policy(headers);
        }
        if self.is_held_by(request) {
            headers.remove(CONTENT_TYPE);
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        match &self.gzip {
            Some(gzip) if accepts_gzip(request) => {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                *response.body_mut() = gzip.clone();
            }
            _ => *response.body_mut() = self.plain.clone(),
        }
        response
    }

    /// Whether the client already has this content, according to its headers.
    fn is_held_by(&self, request: &HeaderMap) -> bool {
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let ours = opaque(self.etag.to_str().unwrap_or_default());
        let values = request.get_all(IF_NONE_MATCH).iter();
        let mut tags = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        tags.any(|tag| tag.trim() == "*" || opaque(tag) == ours)
    }
}

/// Keeps a page from loading anything from other origins, and other sites from framing it or seeing its address.
fn write_page_policy(headers: &mut HeaderMap) {
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(PAGE_POLICY),
    );
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        "cross-origin-opener-policy",
        HeaderValue::from_static("same-origin"),
    );
}

/// The content type of a file, by its extension. Browsers refuse scripts and styles with a wrong type.
fn content_type(path: &str) -> &'static str {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "png" => "image/png",
        "txt" | "LICENSE" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Whether the client accepts gzip: it names `gzip` or `*` with a weight above zero.
fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(ACCEPT_ENCODING).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut any = false;
    for coding in values.flat_map(|value| value.split(',')) {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        let is_refused = weight.trim_matches(['0', '.', ' ']).is_empty();
        match name.trim() {
            name if name.eq_ignore_ascii_case("gzip") => return !is_refused,
            "*" => any = !is_refused,
            _ => {}
        }
    }
    any
}

fn compressed(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// The first 16 bytes of a hash in hexadecimal, which are enough to distinguish versions.
fn hex(hash: &[u8]) -> String {
    hash.iter().take(16).fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    fn script() -> &'static [u8] {
        static SCRIPT: std::sync::LazyLock<Vec<u8>> =
            std::sync::LazyLock::new(|| b"let x = 1;\n".repeat(50));
        &SCRIPT
    }

    #[test]
    fn a_file_is_found_by_its_path_below_the_current_version_alone() {
        let assets = Assets::new(&[("ui/a.js", script()), ("b.css", b"p{}")]);
        let path = format!("{}/ui/a.js", assets.version());
        assert!(assets.find_versioned(&path).is_some());
        for path in [
            "ui/a.js".to_owned(),
            "0123/ui/a.js".to_owned(),
            assets.version().to_owned(),
            format!("{}/", assets.version()),
            format!("{}/../secret", assets.version()),
            format!("{}ui/a.js", assets.version()),
        ] {
            assert!(assets.find_versioned(&path).is_none(), "{path}");
        }
    }

    #[test]
    fn the_version_changes_with_any_name_or_content() {
        let version = |files| Assets::new(files).version().to_owned();
        let first = version(&[("a.js", b"1"), ("b.js", b"2")]);
        assert_eq!(first, version(&[("a.js", b"1"), ("b.js", b"2")]));
        assert_ne!(first, version(&[("a.js", b"1"), ("b.js", b"3")]));
        assert_ne!(first, version(&[("a.js", b"1"), ("c.js", b"2")]));
        assert_ne!(first, version(&[("a.js", b"1")]));
    }

    #[test]
    fn content_is_compressed_for_clients_that_accept_it() {
        let asset = Asset::new(
            "text/javascript; charset=utf-8",
            Bytes::from_static(script()),
        );
        for (accepted, encoded) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("gzip;q=0.000, *", false),
            ("*;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let answer = asset.answer(
                &headers(&[("accept-encoding", accepted)]),
                Lifetime::Forever,
            );
            assert_eq!(
                answer.headers().contains_key(CONTENT_ENCODING),
                encoded,
                "{accepted}"
            );
            let mut plain = Vec::new();
            if encoded {
                let mut decoder = flate2::read::GzDecoder::new(&answer.body()[..]);
                decoder.read_to_end(&mut plain).unwrap();
            } else {
                plain.extend_from_slice(answer.body());
            }
            assert_eq!(plain, script(), "{accepted}");
        }
        let tiny = Asset::new("text/css; charset=utf-8", Bytes::from_static(b"p{}"));
        let answer = tiny.answer(&headers(&[("accept-encoding", "gzip")]), Lifetime::Forever);
        assert!(!answer.headers().contains_key(CONTENT_ENCODING));
    }

    #[test]
    fn a_client_that_has_the_content_is_told_so() {
        let asset = Asset::new("text/html; charset=utf-8", Bytes::from_static(script()));
        let etag = asset.etag.to_str().unwrap().to_owned();
        let strong = etag.trim_start_matches("W/").to_owned();
        for (held, status) in [
            (etag.clone(), 304),
            (strong, 304),
            (format!("\"x\", {etag}"), 304),
            ("*".to_owned(), 304),
            ("\"x\"".to_owned(), 200),
            (String::new(), 200),
        ] {
            let answer = asset.answer(&headers(&[("if-none-match", &held)]), Lifetime::Checked);
            assert_eq!(answer.status(), status, "{held}");
            assert_eq!(answer.body().is_empty(), status == 304, "{held}");
            assert_eq!(answer.headers()[ETAG], etag.as_str());
            assert_eq!(answer.headers()[CACHE_CONTROL], "no-cache");
        }
    }

    #[test]
    fn only_pages_carry_the_policy_of_pages() {
        for (path, is_page) in [("index.html", true), ("app.js", false), ("icon.svg", false)] {
            let assets = Assets::new(&[("index.html", b"a"), ("app.js", b"a"), ("icon.svg", b"a")]);
            let answer = assets
                .find(path)
                .unwrap()
                .answer(&HeaderMap::new(), Lifetime::Forever);
            let policy = answer.headers().get(CONTENT_SECURITY_POLICY);
            assert_eq!(policy.is_some(), is_page, "{path}");
            assert_eq!(answer.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
        assert!(!PAGE_POLICY.contains("unsafe"));
    }
}
