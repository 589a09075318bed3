//! `/admin/v1/wallets/{id}/statement`: the entries of a time range, as pages of JSON or as one CSV table.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use ledger::UnixMs;
use serde::Deserialize;
use store::{STATEMENT_ENTRIES_MAX, StatementRange, Store, StoreError, WalletId};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::wallets::find;
use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::{Json, Path, Query};
use crate::admin::api::page::{Cursor, Page, PageLimit, cursor_position};
use crate::admin::api::state::AdminState;
use crate::operations::statement;
use crate::operations::views::{BalanceView, EntryView, StatementView};

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(wallet_statement))
}

/// The format of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Json,
    Csv,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct StatementQuery {
    /// Entries posted at or after this time, in Unix milliseconds.
    from: Option<i64>,
    /// Entries posted before this time, in Unix milliseconds.
    to: Option<i64>,
    /// `json` in pages, or `csv` with all entries.
    #[serde(default)]
    #[param(inline)]
    format: Format,
    /// The number of entries per page of JSON, 1 to 500.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 50)]
    limit: PageLimit,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor>,
}

/// The statement of a wallet, oldest entries first, with the balance after each and the totals of each month.
#[utoipa::path(
    get,
    path = "/wallets/{id}/statement",
    tag = "wallets",
    params(("id" = String, Path, description = "The wallet's id."), StatementQuery),
    responses(
        (status = 200, description = "A page of the statement, or the whole of it as a table.", content(
            (StatementView = "application/json"),
            (String = "text/csv")
        )),
        (status = 404, description = "There is no such wallet: `not_found`.", body = ErrorBody),
        Refused
    )
)]
async fn wallet_statement(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    Query(query): Query<StatementQuery>,
) -> Result<Response, ApiError> {
    let row = find(&state, &id).await?;
    let store = state.store();
    let (from, to) = (query.from.map(UnixMs::new), query.to.map(UnixMs::new));
    let range = store.statement_range(row.id, from, to).await?;
    if query.format == Format::Csv {
        return Ok(table(store.clone(), row.id, &range));
    }
    let position: Option<i64> = cursor_position(query.cursor.as_ref())?;
    let after = position.unwrap_or(range.opening.seq).max(range.opening.seq);
    let until = range.closing.seq;
    let limit = query.limit;
    let entries = store.statement_entries(row.id, after, until, limit.and_one());
    let entries = entries.await?;
    let page = Page::of(entries, limit, |entry| entry.entry.seq, EntryView::from);
    let months = match position {
        None => Some(statement::months(store, &row, &range).await?),
        Some(_) => None,
    };
    let balance =
        |point: &store::BalancePoint| BalanceView::at(point.posted_at.get(), &point.balances);
    let view = StatementView {
        wallet: row.id.to_string(),
        wallet_name: row.name,
        opening: balance(&range.opening),
        closing: balance(&range.closing),
        months,
        data: page.data,
        next_cursor: page.next_cursor,
    };
    Ok(Json(view).into_response())
}

/// The whole range as a CSV table, which is read from the store while it is sent.
fn table(store: Store, wallet: WalletId, range: &StatementRange) -> Response {
    let until = range.closing.seq;
    let heading = Some(statement::CSV_HEADING.to_owned());
    let lines = stream::try_unfold(
        (store, range.opening.seq, heading),
        move |(store, after, heading)| async move {
            if let Some(heading) = heading {
                return Ok(Some((heading, (store, after, None))));
            }
            let page = store.statement_entries(wallet, after, until, STATEMENT_ENTRIES_MAX);
            let page = page.await?;
            let Some(last) = page.last().map(|entry| entry.entry.seq) else {
                return Ok::<_, StoreError>(None);
            };
            let lines: String = page.into_iter().map(statement::csv_line).collect();
            Ok(Some((lines, (store, last, None))))
        },
    );
    let mut response = Body::from_stream(lines).into_response();
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/csv; charset=utf-8"),
    );
    // An id consists of letters, digits and an underscore, so it is valid in a header.
    let name = format!("attachment; filename=\"statement-{wallet}.csv\"");
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    response
}
