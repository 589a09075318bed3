//! `/search`: finds objects by a few characters, for the console's command palette.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use store::{JournalQuery, TaskQuery};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::filter;
use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, Refused};
use crate::admin::api::extract::{Json, Query};
use crate::admin::api::page::Page;
use crate::admin::api::state::AdminState;

const RESULTS_MAX: usize = 20;
/// The maximum number of results per kind.
const KIND_MAX: u32 = 6;
/// The minimum length of a text that is searched for among task ids.
const TASK_CHARS_MIN: usize = 8;
const REQUEST_PREFIX: &str = "req_";

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(search))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// A part of the name of a wallet, key, model or channel, or the beginning of an id.
    q: String,
}

/// A search result.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Found)]
struct SearchResult {
    kind: Kind,
    id: String,
    title: String,
    #[schema(required)]
    detail: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Wallet,
    Key,
    Model,
    Channel,
    Request,
    Task,
}

/// Find objects by name or id
///
/// Wallets, keys, models, channels, requests and tasks, at most 20.
#[utoipa::path(
    get,
    path = "/search",
    tag = "search",
    params(SearchQuery),
    responses((status = 200, description = "What was found.", body = Page<SearchResult>), Refused),
)]
async fn search(
    _: Viewer,
    State(state): State<AdminState>,
    Query(query): Query<SearchQuery>,
) -> Result<Json<Page<SearchResult>>, ApiError> {
    let text = filter::text(Some(query.q.trim().to_owned()))?;
    let text = text.ok_or_else(|| ApiError::invalid("q", "Nothing to search for."))?;
    let mut found = Vec::new();
    if text.starts_with(REQUEST_PREFIX) {
        found.extend(requests(&state, &text).await?);
    } else if is_like_task(&text) {
        found.extend(tasks(&state, &text).await?);
    }
    found.extend(accounts(&state, &text).await?);
    found.extend(catalog(&state, &text));
    found.truncate(RESULTS_MAX);
    Ok(Json(Page::complete(found)))
}

async fn accounts(state: &AdminState, text: &str) -> Result<Vec<SearchResult>, ApiError> {
    let accounts = state.store().find_accounts(text, KIND_MAX).await?;
    let wallets = accounts.wallets.into_iter().map(|(id, name)| SearchResult {
        kind: Kind::Wallet,
        id: id.to_string(),
        title: name,
        detail: Some(id.to_string()),
    });
    let keys = accounts.keys.into_iter().map(|key| SearchResult {
        kind: Kind::Key,
        id: key.id.to_string(),
        title: key.name.unwrap_or_else(|| key.id.to_string()),
        detail: Some(key.prefix),
    });
    Ok(wallets.chain(keys).collect())
}

fn catalog(state: &AdminState, text: &str) -> Vec<SearchResult> {
    let lower = text.to_lowercase();
    let catalog = state.engine.catalog();
    let named = |kind: Kind, name: &str| SearchResult {
        kind,
        id: name.to_owned(),
        title: name.to_owned(),
        detail: None,
    };
    let has_text = |name: &str| name.to_lowercase().contains(&lower);
    let models = catalog.list().map(|model| &*model.id);
    let models = models
        .filter(|name| has_text(name))
        .map(|name| named(Kind::Model, name));
    let channels = catalog.channels().map(upstream::Channel::name);
    let channels = channels
        .filter(|name| has_text(name))
        .map(|name| named(Kind::Channel, name));
    let most = KIND_MAX as usize;
    models.take(most).chain(channels.take(most)).collect()
}

async fn requests(state: &AdminState, prefix: &str) -> Result<Vec<SearchResult>, ApiError> {
    let query = JournalQuery {
        request_prefix: Some(prefix.to_owned()),
        limit: KIND_MAX,
        without_bodies: true,
        ..JournalQuery::default()
    };
    let page = state.store().journal_page(query).await?;
    let found = page.entries.into_iter().map(|entry| SearchResult {
        kind: Kind::Request,
        id: entry.row.request_id.to_string(),
        title: entry.row.request_id.to_string(),
        detail: Some(format!("{} {}", entry.row.status, entry.row.model)),
    });
    Ok(found.collect())
}

/// Whether the text can be the beginning of a task id, which has only hexadecimal digits and hyphens.
fn is_like_task(text: &str) -> bool {
    let mut signs = text.bytes();
    text.len() >= TASK_CHARS_MIN && signs.all(|sign| sign == b'-' || sign.is_ascii_hexdigit())
}

async fn tasks(state: &AdminState, prefix: &str) -> Result<Vec<SearchResult>, ApiError> {
    let query = TaskQuery {
        id_prefix: Some(prefix.to_lowercase().into()),
        with_hidden: true,
        uncounted: true,
        limit: KIND_MAX,
        ..TaskQuery::default()
    };
    let tasks = state.store().tasks(query).await?.tasks;
    let found = tasks.into_iter().map(|task| SearchResult {
        kind: Kind::Task,
        id: task.id.to_string(),
        title: task.id.to_string(),
        detail: Some(format!("{} {}", task.status, task.model)),
    });
    Ok(found.collect())
}
