//! Serves the page for callers at `/`: HTML for browsers, JSON for all other clients.
//!
//! The parts that need no key work without JavaScript. The HTML is the same for all visitors, so it is generated at
//! most once every few seconds.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use engine::{Engine, Model};
use http::HeaderMap;
use http::header::ACCEPT;
use serde_json::json;

use super::html;
use crate::assets::{Asset, Assets};
use crate::embedded;
use crate::endpoint::PAGE_FILES;

/// How long a generated page is served, even if the catalog has changed.
const WRITTEN_TTL: Duration = Duration::from_secs(5);

const EMBEDDED: &[(&str, &[u8])] = embedded!("page":
    "client.js", "dom.js", "format.js", "icon.svg", "index.html", "models.js", "page.js", "playground.js", "style.css",
);

static FILES: LazyLock<Assets> = LazyLock::new(|| Assets::new(EMBEDDED));

/// A file of the page. Its path begins with the version.
pub(crate) fn file(path: &str) -> Option<&'static Asset> {
    FILES.find_versioned(path)
}

/// Whether a client asks for HTML. Programs accept any type and get JSON.
pub(crate) fn asks_for_html(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter();
    let mut ranges = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    ranges.any(|range| {
        let (name, weight) = range.split_once(';').unwrap_or((range, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        let is_refused = weight.trim_matches(['0', '.', ' ']).is_empty();
        name.trim().eq_ignore_ascii_case("text/html") && !is_refused
    })
}

#[derive(Debug)]
pub(crate) struct CallersPage {
    lists_models: bool,
    json: Asset,
    html: ArcSwapOption<WrittenPage>,
}

#[derive(Debug)]
struct WrittenPage {
    at: Instant,
    page: Asset,
}

impl CallersPage {
    pub(crate) fn new(lists_models: bool) -> Self {
        let links = json!({
            "name": "Tollgate",
            "openapi": "/openapi.json",
            "models": "/v1/models",
            "balance": "/v1/balance",
            "authentication": "Authorization: Bearer <API key>",
        });
        Self {
            lists_models,
            json: Asset::new("application/json", Bytes::from(links.to_string())),
            html: ArcSwapOption::empty(),
        }
    }

    pub(crate) fn json(&self) -> Asset {
        self.json.clone()
    }

    pub(crate) fn html(&self, engine: &Engine) -> Asset {
        if let Some(written) = &*self.html.load()
            && written.at.elapsed() < WRITTEN_TTL
        {
            return written.page.clone();
        }
        let catalog = engine.catalog();
        let models: Option<Vec<&Model>> = self
            .lists_models
            .then(|| catalog.list().map(|model| &**model).collect());
        let template = FILES.find("index.html").map_or("", Asset::text);
        let files = format!("{PAGE_FILES}/{}", FILES.version());
        let text = html::write(template, &files, engine.public_url(), models.as_deref());
        let page = Asset::new("text/html; charset=utf-8", Bytes::from(text));
        self.html.store(Some(Arc::new(WrittenPage {
            at: Instant::now(),
            page: page.clone(),
        })));
        page
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let names = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let served: Vec<_> = EMBEDDED.iter().map(|(name, _)| *name).collect();
        assert_eq!(served, names);
    }

    #[test]
    fn only_clients_that_name_html_get_it() {
        for (accepted, html) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
            ("application/json, Text/HTML;q=0.2", true),
            ("text/html;q=0, application/json", false),
            ("*/*", false),
            ("application/json", false),
            ("text/plain", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accepted.parse().unwrap());
            assert_eq!(asks_for_html(&headers), html, "{accepted}");
        }
        assert!(!asks_for_html(&HeaderMap::new()));
    }
}
