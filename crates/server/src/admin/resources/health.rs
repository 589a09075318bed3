//! `/healthz`, `/readyz` and `/metrics`: for load balancers and scrapers, without a token.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::admin::api::extract::Json;
use crate::admin::api::state::AdminState;

pub(crate) fn router() -> Router<AdminState> {
    Router::new()
        .route("/healthz", get(health))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics))
}

/// Answers as long as the event loop runs.
async fn health() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

async fn readiness(State(state): State<AdminState>) -> Response {
    let draining = state.is_draining();
    let is_store_healthy = state.store().healthy();
    let is_ready = !draining && is_store_healthy;
    let channels: BTreeMap<_, _> = state.engine.channel_states().into_iter().collect();
    let detail = json!({
        "ready": is_ready,
        "draining": draining,
        "store": is_store_healthy,
        // Does not affect readiness, because most calls need no media storage.
        "storage": state.engine.storage_state().as_str(),
        "channels": channels,
    });
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(detail)).into_response()
}

/// Scrapers that ask for `OpenMetrics` also get exemplars, which parsers of the older text format do not know.
async fn metrics(State(state): State<AdminState>, headers: HeaderMap) -> Response {
    let text = if accepts_openmetrics(&headers) {
        state.engine.scrape_with_exemplars().await
    } else {
        state.engine.scrape().await
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], text).into_response()
}

/// Whether a request accepts version 1.0.0 of `OpenMetrics`.
fn accepts_openmetrics(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|format| {
        let mut parts = format.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let parameter = |name: &str| {
            let mut named = parts.clone().filter_map(|part| part.split_once('='));
            let found = named.find(|(it, _)| it.trim().eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().trim_matches('"'))
        };
        // A weight of zero refuses the format.
        let is_refused = parameter("q").is_some_and(|q| q.trim_end_matches(['0', '.']).is_empty());
        kind.eq_ignore_ascii_case("application/openmetrics-text")
            && parameter("version") == Some("1.0.0")
            && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_scrapers_that_ask_for_openmetrics_get_it() {
        for (accept, is_accepted) in [
            // Prometheus 2 and 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                true,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                true,
            ),
            (
                "text/plain, Application/OpenMetrics-Text; Version=\"1.0.0\"; q=0.001",
                true,
            ),
            ("application/openmetrics-text; version=1.0.0; q=0", false),
            (
                "application/openmetrics-text; version=1.0.0; q=0.000",
                false,
            ),
            ("application/openmetrics-text; version=0.0.1", false),
            ("application/openmetrics-text", false),
            ("application/openmetrics-text-x; version=1.0.0", false),
            ("text/plain; version=1.0.0", false),
            ("*/*", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
            assert_eq!(accepts_openmetrics(&headers), is_accepted, "{accept}");
        }
        assert!(!accepts_openmetrics(&HeaderMap::new()));
    }
}
