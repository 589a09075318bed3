//! `/admin/v1/audit`: the log of administrative changes.

use axum::extract::State;
use ledger::UnixMs;
use serde::Deserialize;
use store::{AuditCursor, AuditQuery};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::filter;
use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, Refused};
use crate::admin::api::extract::{Json, Query};
use crate::admin::api::page::{Cursor, Page, PageLimit, cursor_position};
use crate::admin::api::state::AdminState;
use crate::operations::views::AuditView;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(list_audit))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// The id or the name of the actor who made the change.
    actor: Option<String>,
    /// The action, such as `wallet.create`.
    action: Option<String>,
    /// The id of the changed object.
    target: Option<String>,
    /// Changes made at or after this time, in Unix milliseconds.
    from: Option<i64>,
    /// Changes made before this time, in Unix milliseconds.
    to: Option<i64>,
    /// A part of any text of the row, case-insensitive.
    q: Option<String>,
    /// The number of rows, 1 to 500.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 50)]
    limit: PageLimit,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor>,
}

/// List administrative changes, newest first.
#[utoipa::path(
    get,
    path = "/audit",
    tag = "audit",
    params(ListQuery),
    responses((status = 200, description = "A page of rows.", body = Page<AuditView>), Refused)
)]
async fn list_audit(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<AuditView>>, ApiError> {
    let limit = query.limit;
    let rows = state.store().audit(AuditQuery {
        actor: query.actor,
        action: query.action,
        target: query.target,
        from: query.from.map(UnixMs::new),
        to: query.to.map(UnixMs::new),
        text: filter::text(query.q)?,
        before: cursor_position(query.cursor.as_ref())?.map(AuditCursor),
        limit: limit.and_one(),
    });
    let rows = rows.await?;
    Ok(Json(Page::of(
        rows,
        limit,
        |row| row.cursor.0,
        AuditView::from,
    )))
}
