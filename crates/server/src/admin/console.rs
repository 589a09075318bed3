//! Serves the console: a page at `/` of the admin listener, with its modules and styles.
//!
//! The files contain nothing about this process. They call `/admin/v1` like any other client.

use bytes::Bytes;
use http::header::CONTENT_SECURITY_POLICY;
use http::{HeaderMap, HeaderValue, Response};
use http_server::{Asset, Assets, Lifetime, embedded};

/// The beginning of the paths of the files. The version of the files follows.
const FILES: &str = "/console/";
/// The placeholder in the page that is replaced with the version of the files.
const VERSION: &str = "CONSOLE_VERSION";

const EMBEDDED: &[(&str, &[u8])] = embedded!("console":
    "api.js",
    "app.js",
    "format.js",
    "icon.svg",
    "index.html",
    "load.js",
    "pages/alerts/kinds.js",
    "pages/alerts/page.js",
    "pages/alerts/rule.js",
    "pages/audit/page.js",
    "pages/channels/add.js",
    "pages/channels/model-picker.js",
    "pages/channels/page.js",
    "pages/channels/save.js",
    "pages/keys/create.js",
    "pages/keys/key.js",
    "pages/keys/limits.js",
    "pages/keys/page.js",
    "pages/models/page.js",
    "pages/overview/page.js",
    "pages/playground/answer.js",
    "pages/playground/dialects.js",
    "pages/playground/microphone.js",
    "pages/playground/page.js",
    "pages/playground/realtime.js",
    "pages/playground/run.js",
    "pages/playground/session.js",
    "pages/playground/sound.js",
    "pages/requests/call.js",
    "pages/requests/page.js",
    "pages/settings/page.js",
    "pages/sign-in/page.js",
    "pages/tasks/page.js",
    "pages/wallets/manual-entry.js",
    "pages/wallets/page.js",
    "pages/wallets/statement.js",
    "pages/wallets/wallet.js",
    "preact.js",
    "router.js",
    "snippets.js",
    "style.css",
    "ui/call-table.js",
    "ui/chart.js",
    "ui/components.js",
    "ui/dialog.js",
    "ui/icon.js",
    "ui/key-table.js",
    "ui/media.js",
    "ui/palette.js",
    "ui/price.js",
    "ui/table.js",
    "ui/toast.js",
    "vendor/htm-preact-3.1.1.js",
    "vendor/htm.LICENSE",
    "vendor/preact.LICENSE",
    "vendor/uplot-1.6.32.css",
    "vendor/uplot-1.6.32.js",
    "vendor/uplot.LICENSE",
);

#[derive(Debug)]
pub(crate) struct Console {
    files: Assets,
    page: Asset,
    policy: HeaderValue,
}

impl Console {
    /// `public_url` is the base of the URLs of generated media, which the console shows.
    pub(crate) fn new(public_url: &str) -> Self {
        let files = Assets::new(EMBEDDED);
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/console/index.html"));
        let page = page.replace(VERSION, files.version());
        Self {
            page: Asset::new("text/html; charset=utf-8", Bytes::from(page)),
            policy: policy(public_url),
            files,
        }
    }

    /// The answer to a GET of this path, if it names the page or one of its files.
    pub(crate) fn answer(&self, path: &str, request: &HeaderMap) -> Option<Response<Bytes>> {
        if path == "/" {
            let mut answer = self.page.answer(request, Lifetime::Checked);
            let headers = answer.headers_mut();
            headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
            return Some(answer);
        }
        let file = self.files.find_versioned(path.strip_prefix(FILES)?)?;
        Some(file.answer(request, Lifetime::Forever))
    }
}

/// The content security policy. The page loads everything from its own origin, except for pictures, sound and videos.
/// These may also be in `data:` and `blob:` URLs, or come from the public listener.
fn policy(public_url: &str) -> HeaderValue {
    let media = origin(public_url).unwrap_or_default();
    let text = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self' data: blob: {media}; media-src 'self' data: blob: {media}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("default-src 'self'"))
}

/// The scheme, host and port of a URL, if they can be written into a policy.
fn origin(url: &str) -> Option<String> {
    let url: http::Uri = url.parse().ok()?;
    let scheme = url
        .scheme_str()
        .filter(|it| ["http", "https"].contains(it))?;
    let authority = url.authority()?.as_str();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let is_plain = authority.bytes().all(is_plain);
    is_plain.then(|| format!("{scheme}://{authority}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};

    use super::*;

    /// How many compressed bytes a browser may transfer for the first page. All files together must stay below it.
    const FIRST_PAGE_BYTES_MAX: usize = 150 * 1024;

    fn console() -> Console {
        Console::new("http://127.0.0.1:8080")
    }

    fn accepting_gzip() -> HeaderMap {
        [(
            http::header::ACCEPT_ENCODING,
            HeaderValue::from_static("gzip, br"),
        )]
        .into_iter()
        .collect()
    }

    #[test]
    fn every_file_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
        let (mut names, mut folders) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let list = if path.is_dir() {
                    &mut folders
                } else {
                    &mut names
                };
                list.push(path);
            }
        }
        names.sort();
        let mut embedded: Vec<_> = EMBEDDED.iter().map(|(name, _)| root.join(name)).collect();
        embedded.sort();
        assert_eq!(embedded, names);
    }

    #[test]
    fn everything_that_the_page_names_is_served_with_its_type() {
        let console = console();
        let page = console.answer("/", &HeaderMap::new()).unwrap();
        assert_eq!(page.headers()[CACHE_CONTROL], "no-cache");
        let text = std::str::from_utf8(page.body()).unwrap();
        assert!(!text.contains(VERSION));
        let mut named = 0;
        for part in text
            .split(['"', '\''])
            .filter(|part| part.starts_with("console/"))
        {
            let answer = console.answer(&format!("/{part}"), &HeaderMap::new());
            let answer = answer.unwrap_or_else(|| panic!("{part} is not served"));
            let kind = answer.headers()[CONTENT_TYPE].to_str().unwrap();
            let expected = match part.rsplit_once('.').unwrap().1 {
                "js" => "text/javascript",
                "css" => "text/css",
                _ => "image/svg+xml",
            };
            assert!(kind.starts_with(expected), "{part}: {kind}");
            assert!(
                answer.headers()[CACHE_CONTROL]
                    .to_str()
                    .unwrap()
                    .contains("immutable")
            );
            assert!(answer.headers().contains_key(ETAG));
            named += 1;
        }
        assert!(named > 5, "{text}");
    }

    #[test]
    fn all_files_together_are_smaller_than_a_first_page_may_be() {
        let console = console();
        let version = console.files.version();
        let sizes = EMBEDDED.iter().map(|(path, _)| {
            let answer = console.answer(&format!("/console/{version}/{path}"), &accepting_gzip());
            answer.unwrap().body().len()
        });
        let size: usize = sizes.sum();
        assert!(size < FIRST_PAGE_BYTES_MAX, "{size}");
    }

    #[test]
    fn modules_import_only_what_is_there() {
        let files = Assets::new(EMBEDDED);
        for (path, bytes) in EMBEDDED {
            let Some(text) = path
                .strip_suffix(".js")
                .map(|_| std::str::from_utf8(bytes).unwrap())
            else {
                continue;
            };
            for line in text
                .lines()
                .filter(|line| line.starts_with("import ") || line.starts_with("export {"))
            {
                let Some((_, from)) = line.rsplit_once(" from '") else {
                    continue;
                };
                let mut place: Vec<&str> = path.split('/').collect();
                place.pop();
                for step in from.trim_end_matches("';").split('/') {
                    match step {
                        "." => {}
                        ".." => assert!(place.pop().is_some(), "{path}: {from}"),
                        name => place.push(name),
                    }
                }
                assert!(files.find(&place.join("/")).is_some(), "{path}: {from}");
            }
        }
    }

    #[test]
    fn the_policy_admits_media_of_the_public_listener_and_nothing_else() {
        for (url, origin) in [
            ("https://api.example.com/base", "https://api.example.com;"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080;"),
            ("http://[::1]:8080", "http://[::1]:8080;"),
        ] {
            let policy = policy(url);
            assert!(
                policy
                    .to_str()
                    .unwrap()
                    .contains(&format!("media-src 'self' data: blob: {origin}")),
                "{policy:?}"
            );
        }
        for url in [
            "",
            "nothing",
            "ftp://x",
            "https://a;script-src *",
            "javascript:alert(1)",
        ] {
            let policy = policy(url);
            assert!(
                policy
                    .to_str()
                    .unwrap()
                    .contains("media-src 'self' data: blob: ;"),
                "{policy:?}"
            );
        }
        let page = console().answer("/", &HeaderMap::new()).unwrap();
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none';") && !policy.contains("unsafe"),
            "{policy}"
        );
    }

    #[test]
    fn other_paths_are_not_the_console_s() {
        let console = console();
        for path in [
            "/index.html",
            "/app.js",
            "/console/",
            "/console/0/app.js",
            "/admin/v1/wallets",
            "//",
        ] {
            assert!(console.answer(path, &HeaderMap::new()).is_none(), "{path}");
        }
    }
}
