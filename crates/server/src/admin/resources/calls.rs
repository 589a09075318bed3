//! `/calls`: searches the journal, and explains one call.

use axum::extract::State;
use ledger::UnixMs;
use serde::Deserialize;
use store::{JournalCursor, KeyId};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::filter;
use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, Refused};
use crate::admin::api::extract::{Json, Path, Query};
use crate::admin::api::page::{Cursor, Page, PageLimit, cursor_position};
use crate::admin::api::state::AdminState;
use crate::operations::calls::{self, CallFilter, Explanation, names_of_calls, statuses};
use crate::operations::views::{CallDetail, CallView};

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list_calls))
        .routes(routes!(explain_call))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CallsQuery {
    /// The id or the name of a wallet.
    wallet: Option<String>,
    /// The id of a key.
    key: Option<String>,
    model: Option<String>,
    /// The channel that answered, or whose failure ended the call.
    channel: Option<String>,
    endpoint: Option<String>,
    /// A status such as 429, a class such as 4xx, or `error` for 400 and above.
    status: Option<String>,
    /// Calls that ended at this time or later, in Unix milliseconds.
    #[param(value_type = Option<i64>)]
    from: Option<UnixMs>,
    /// Calls that ended before this time.
    #[param(value_type = Option<i64>)]
    to: Option<UnixMs>,
    /// The beginning of a request id, a part of the name of a model, a wallet or a key, or an error code.
    q: Option<String>,
    /// The number of rows, 1 to 500.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 50)]
    limit: PageLimit,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor>,
}

/// Search the journal
///
/// Newest first. A search that takes too long answers the rows that it has found so far, possibly none, and a cursor
/// with which it continues. The search is over when `next_cursor` is null.
#[utoipa::path(
    get,
    path = "/calls",
    tag = "calls",
    params(CallsQuery),
    responses((status = 200, description = "A page of calls.", body = Page<CallView>), Refused),
)]
async fn list_calls(
    _: Viewer,
    State(state): State<AdminState>,
    Query(query): Query<CallsQuery>,
) -> Result<Json<Page<CallView>>, ApiError> {
    let store = state.store();
    let status = filter::non_empty(query.status).map(|text| statuses(&text));
    let filter = CallFilter {
        wallet: filter::wallet(store, query.wallet).await?,
        key: filter::key(query.key)?,
        model: filter::non_empty(query.model),
        channel: filter::non_empty(query.channel),
        endpoint: filter::non_empty(query.endpoint),
        status: status
            .transpose()
            .map_err(|error| ApiError::invalid("status", error))?,
        from: query.from,
        to: query.to,
        text: filter::text(query.q)?,
        before: cursor_position(query.cursor.as_ref())?.map(JournalCursor::new),
        limit: query.limit.get(),
    };
    let models = filter::models(&state);
    let page = calls::search(store, filter, &models).await?;
    let names = names_of_calls(store, &page.entries).await?;
    let rows = page
        .entries
        .iter()
        .map(|entry| CallView::of(&entry.row, &names));
    Ok(Json(Page::of_search(
        rows.collect(),
        page.next.map(JournalCursor::get),
    )))
}

/// Explain a call
///
/// How long each stage took, which routes were tried and why they failed, what was held and charged, and how the charge
/// was computed.
#[utoipa::path(
    get,
    path = "/calls/{request_id}",
    tag = "calls",
    params(("request_id" = String, Path, description = "The id that the caller got in `x-request-id`.")),
    responses(
        (status = 200, description = "The call.", body = CallDetail),
        (status = 404, description = "The journal has no such call: `not_found`.", body = crate::admin::api::error::ErrorBody),
        Refused,
    ),
)]
async fn explain_call(
    _: Viewer,
    State(state): State<AdminState>,
    Path(request_id): Path<String>,
) -> Result<Json<CallDetail>, ApiError> {
    let found = Explanation::find(state.store(), &request_id).await?;
    let call = found.ok_or_else(|| ApiError::not_found("call", &request_id))?;
    let (wallets, keys): (Vec<_>, Vec<KeyId>) = (
        call.row.wallet.into_iter().collect(),
        call.row.key.into_iter().collect(),
    );
    let names = state.store().account_names(wallets, keys).await?;
    Ok(Json(CallDetail::of(&call, &names)))
}
