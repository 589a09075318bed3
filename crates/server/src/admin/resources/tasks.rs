//! `/tasks`: the tasks of all wallets.

use axum::extract::State;
use serde::Deserialize;
use store::{TaskId, TaskListed, TaskQuery};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::filter;
use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::{Json, Path, Query};
use crate::admin::api::page::{Cursor, Page, PageLimit, cursor_position};
use crate::admin::api::state::AdminState;
use crate::operations::views::{TaskStatus, TaskView, names_of_tasks};

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list_tasks))
        .routes(routes!(show_task))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TasksQuery {
    /// `queued`, `running`, `done`, `failed` or `cancelled`, or a status of one of the video protocols.
    status: Option<String>,
    /// The id or the name of a wallet.
    wallet: Option<String>,
    /// The id of a key.
    key: Option<String>,
    model: Option<String>,
    /// The number of rows, 1 to 500.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 50)]
    limit: PageLimit,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor>,
}

/// List tasks
///
/// Newest first. Tasks that their owners have deleted are included.
#[utoipa::path(
    get,
    path = "/tasks",
    tag = "tasks",
    params(TasksQuery),
    responses((status = 200, description = "A page of tasks.", body = Page<TaskView>), Refused),
)]
async fn list_tasks(
    _: Viewer,
    State(state): State<AdminState>,
    Query(query): Query<TasksQuery>,
) -> Result<Json<Page<TaskView>>, ApiError> {
    let store = state.store();
    let before: Option<String> = cursor_position(query.cursor.as_ref())?;
    let before = before.map(|id| TaskId::parse(&id)).transpose();
    let status = filter::non_empty(query.status);
    let tasks = TaskQuery {
        wallet: filter::wallet(store, query.wallet).await?,
        key: filter::key(query.key)?,
        model: filter::non_empty(query.model).map(Into::into),
        statuses: status
            .map(|status| TaskStatus::words(&status))
            .unwrap_or_default(),
        before: before
            .map_err(|_| ApiError::invalid("cursor", "This is not a cursor of this list."))?,
        with_hidden: true,
        uncounted: true,
        limit: query.limit.and_one(),
        ..TaskQuery::default()
    };
    let tasks = store.tasks(tasks).await?.tasks;
    let names = names_of_tasks(store, &tasks).await?;
    let position = |task: &TaskListed| task.id.to_string();
    Ok(Json(Page::of(tasks, query.limit, position, |task| {
        TaskView::of(&task, &names)
    })))
}

/// Show a task
#[utoipa::path(
    get,
    path = "/tasks/{id}",
    tag = "tasks",
    params(("id" = String, Path, description = "The id that the caller got.")),
    responses(
        (status = 200, description = "The task.", body = TaskView),
        (status = 404, description = "There is no such task: `not_found`.", body = ErrorBody),
        Refused,
    ),
)]
async fn show_task(
    _: Viewer,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<Json<TaskView>, ApiError> {
    let unknown = || ApiError::not_found("task", &id);
    let query = TaskQuery {
        ids: vec![TaskId::parse(&id).map_err(|_| unknown())?],
        with_hidden: true,
        uncounted: true,
        limit: 1,
        ..TaskQuery::default()
    };
    let tasks = state.store().tasks(query).await?.tasks;
    let task = tasks.first().ok_or_else(unknown)?;
    let names = names_of_tasks(state.store(), &tasks).await?;
    Ok(Json(TaskView::of(task, &names)))
}
