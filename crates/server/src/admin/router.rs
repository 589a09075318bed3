//! Combines the routers of all resources, and adds the middleware that runs for every request.

use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use super::access::authenticate;
use super::api::answer::complete;
use super::api::error::{ApiError, ErrorBody};
use super::api::state::AdminState;
use super::resources::{
    alerts, attention, audit, calls, channels, config, entries, events, health, keys, models, play,
    presets, proposed_channels, search, session, statement, tasks, tokens, usage, wallets,
};

/// The parts of the API's description that belong to no handler.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tollgate admin API",
        description = "Everything that the console and the command line can do, for scripts. Amounts are decimal texts of credits with a twin in micro-credits; times are Unix milliseconds.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(ErrorBody)),
    security(("token" = []), ("session" = [])),
)]
struct Description;

/// The resources of `/admin/v1`, one line each.
fn resources() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .merge(alerts::router())
        .merge(attention::router())
        .merge(audit::router())
        .merge(calls::router())
        .merge(events::router())
        .merge(keys::router())
        .merge(play::router())
        .merge(search::router())
        .merge(session::router())
        .merge(tasks::router())
        .merge(tokens::router())
        .merge(usage::router())
        .merge(wallets::router())
        .merge(entries::router())
        .merge(statement::router())
        .merge(channels::router())
        .merge(config::router())
        .merge(models::router())
        .merge(presets::router())
        .merge(proposed_channels::router())
}

pub(crate) fn router(state: AdminState) -> Router {
    let (api, _) = api();
    api.merge(health::router())
        .route("/openapi.json", get(description))
        .fallback(async || ApiError::unknown_path())
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
        .layer(from_fn_with_state(state.clone(), authenticate))
        .layer(from_fn_with_state(state.clone(), console))
        .layer(from_fn(complete))
        .with_state(state)
}

fn api() -> (Router<AdminState>, utoipa::openapi::OpenApi) {
    let mut description = Description::openapi();
    let components = description.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    components.add_security_scheme("token", SecurityScheme::Http(bearer.build()));
    let cookie = ApiKey::Cookie(ApiKeyValue::new("tollgate_admin"));
    components.add_security_scheme("session", SecurityScheme::ApiKey(cookie));
    OpenApiRouter::with_openapi(description)
        .nest("/admin/v1", resources())
        .split_for_parts()
}

/// The description of the API, serialized once.
static DESCRIPTION: LazyLock<Bytes> = LazyLock::new(|| {
    let text = api().1.to_pretty_json().unwrap_or_default();
    Bytes::from(text + "\n")
});

async fn description() -> Response {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION.clone()).into_response()
}

/// Serves the page and the files of the console, which need no token.
async fn console(State(state): State<AdminState>, request: Request, next: Next) -> Response {
    let reads = matches!(request.method().as_str(), "GET" | "HEAD");
    let path = request.uri().path();
    if reads
        && !path.starts_with("/admin/")
        && let Some(answer) = state.console().answer(path, request.headers())
    {
        return answer.map(Body::from);
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// To write the file: `TOLLGATE_WRITE_OPENAPI=1 cargo test -p tollgate-server --lib openapi`.
    #[test]
    fn the_committed_openapi_document_is_current() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/api/admin.openapi.json"
        );
        let current = std::str::from_utf8(&DESCRIPTION).unwrap();
        if std::env::var_os("TOLLGATE_WRITE_OPENAPI").is_some() {
            std::fs::write(file, current).unwrap();
        }
        let committed = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            committed == current,
            "docs/api/admin.openapi.json is not current; TOLLGATE_WRITE_OPENAPI=1 rewrites it"
        );
    }

    #[test]
    fn every_operation_has_an_id_a_tag_and_a_summary_of_its_own() {
        let description: serde_json::Value = serde_json::from_slice(&DESCRIPTION).unwrap();
        let mut ids = std::collections::HashSet::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                if !operation["responses"].is_object() {
                    continue;
                }
                let id = operation["operationId"].as_str().unwrap_or_default();
                assert!(ids.insert(id.to_owned()), "{method} {path}: {id}");
                assert!(operation["summary"].is_string(), "{method} {path}");
                assert_eq!(
                    operation["tags"].as_array().map(Vec::len),
                    Some(1),
                    "{path}"
                );
                for status in ["401", "429"] {
                    let response = operation["responses"].get(status);
                    assert!(
                        response.is_some(),
                        "{method} {path} does not tell of {status}"
                    );
                }
            }
        }
    }
}
