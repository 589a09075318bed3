//! `/healthz`, `/readyz` and `/metrics`: for load balancers and scrapers, without a token.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::json;

use crate::admin::api::extract::Json;
use crate::admin::api::state::AdminState;

pub(crate) fn router() -> Router<AdminState> {
    Router::new()
        .route("/healthz", get(health))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics))
}

/// Healthy means that the event loop still answers.
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

async fn metrics(State(state): State<AdminState>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], state.engine.scrape()).into_response()
}
