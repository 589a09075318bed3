//! `/admin/v1/wallets`: creates, lists and changes wallets, and shows their balance over time.

#![allow(
    clippy::option_option,
    reason = "in a change, an absent member, null and a value mean three things"
)]

use axum::extract::State;
use http::StatusCode;
use ledger::{Micro, UnixMs, WalletStatus};
use serde::Deserialize;
use store::{NewWallet, WalletCursor, WalletId, WalletQuery, WalletRow, WalletSettings};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::filter;
use super::keys::nullable;
use crate::admin::access::{Operator, Viewer};
use crate::admin::api::amount::Credits;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::{Json, Path, Query};
use crate::admin::api::object::Object;
use crate::admin::api::page::{Cursor, Page, PageLimit, cursor_position};
use crate::admin::api::state::AdminState;
use crate::operations::calendar::{day_start, month_start};
use crate::operations::statement;
use crate::operations::views::{BalanceView, WalletSpendingView};

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list_wallets, create_wallet))
        .routes(routes!(show_wallet, update_wallet))
        .routes(routes!(wallet_history))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// A part of the name, case-insensitive, or the beginning of the id.
    q: Option<String>,
    /// The number of rows, 1 to 500.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 50)]
    limit: PageLimit,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor>,
}

/// List wallets, newest first.
#[utoipa::path(
    get,
    path = "/wallets",
    tag = "wallets",
    params(ListQuery),
    responses((status = 200, description = "A page of wallets.", body = Page<WalletSpendingView>), Refused)
)]
async fn list_wallets(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<WalletSpendingView>>, ApiError> {
    let limit = query.limit;
    let rows = state.store().list_wallets(WalletQuery {
        text: filter::text(query.q)?,
        after: cursor_position(query.cursor.as_ref())?.map(WalletCursor),
        limit: limit.and_one(),
        ..spending_now()
    });
    Ok(Json(Page::of(
        rows.await?,
        limit,
        |row| row.cursor.0,
        WalletSpendingView::from,
    )))
}

/// A new wallet.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWallet)]
struct CreateBody {
    /// Unique among wallets, 1 to 200 printable characters.
    name: String,
    /// Initial paid credits, booked as a top-up.
    balance: Option<Credits>,
    /// Initial gift credits, booked as a gift.
    gift: Option<Credits>,
    /// How far the wallet may go below zero.
    credit_limit: Option<Credits>,
}

/// Create a wallet.
#[utoipa::path(
    post,
    path = "/wallets",
    tag = "wallets",
    request_body = CreateBody,
    responses(
        (status = 201, description = "The wallet.", body = WalletSpendingView),
        (status = 409, description = "Another wallet has this name: `name_taken`.", body = ErrorBody),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused
    )
)]
async fn create_wallet(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Json(body): Json<CreateBody>,
) -> Result<(StatusCode, Json<WalletSpendingView>), ApiError> {
    let new = NewWallet {
        name: body.name,
        balance: not_negative("balance", body.balance)?,
        gift: not_negative("gift", body.gift)?,
        credit_limit: not_negative("credit_limit", body.credit_limit)?,
    };
    let row = state.store().create_wallet(new, &actor).await;
    let row = row.map_err(with_name_param)?;
    Ok((StatusCode::CREATED, show(&state, row.id).await?))
}

/// Show a wallet.
#[utoipa::path(
    get,
    path = "/wallets/{id}",
    tag = "wallets",
    params(("id" = String, Path, description = "The wallet's id.")),
    responses(
        (status = 200, description = "The wallet.", body = WalletSpendingView),
        (status = 404, description = "There is no such wallet: `not_found`.", body = ErrorBody),
        Refused
    )
)]
async fn show_wallet(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<Json<WalletSpendingView>, ApiError> {
    show(&state, wallet_id(&id)?).await
}

/// The settings of a wallet. A member that is left out keeps its value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WalletChange)]
struct UpdateBody {
    name: Option<String>,
    /// How far the wallet may go below zero. Debt beyond a lower limit remains.
    credit_limit: Option<Credits>,
    /// Whether calls are admitted. Running calls finish and are charged.
    enabled: Option<bool>,
    /// The low-balance alert of the wallet. Null removes it.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<AlertsBody>)]
    alerts: Option<Option<Object<AlertsBody>>>,
}

/// The low-balance alert of a wallet.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WalletAlertsChange)]
struct AlertsBody {
    /// The balance below which the alert begins: paid and gift credits, less the used credit line. The amount may be
    /// negative for a wallet with a credit line.
    below: Credits,
}

/// Change a wallet. If one member is refused, none is changed.
#[utoipa::path(
    patch,
    path = "/wallets/{id}",
    tag = "wallets",
    params(("id" = String, Path, description = "The wallet's id.")),
    request_body = UpdateBody,
    responses(
        (status = 200, description = "The wallet.", body = WalletSpendingView),
        (status = 404, description = "There is no such wallet: `not_found`.", body = ErrorBody),
        (status = 409, description = "Another wallet has this name: `name_taken`.", body = ErrorBody),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused
    )
)]
async fn update_wallet(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    Json(body): Json<UpdateBody>,
) -> Result<Json<WalletSpendingView>, ApiError> {
    let id = wallet_id(&id)?;
    let credit_limit = body
        .credit_limit
        .map(|limit| not_negative("credit_limit", Some(limit)))
        .transpose()?;
    let settings = WalletSettings {
        name: body.name,
        credit_limit,
        status: body.enabled.map(|enabled| {
            if enabled {
                WalletStatus::Active
            } else {
                WalletStatus::Disabled
            }
        }),
        alert_below: body
            .alerts
            .map(|alerts| alerts.map(|Object(alerts)| alerts.below.0)),
    };
    let updated = state.store().update_wallet(id, settings, &actor).await;
    updated.map_err(with_name_param)?;
    show(&state, id).await
}

/// The balance of a wallet at the end of each day (UTC), for at most a year. The last value is the current balance.
#[utoipa::path(
    get,
    path = "/wallets/{id}/history",
    tag = "wallets",
    params(("id" = String, Path, description = "The wallet's id.")),
    responses(
        (status = 200, description = "One balance for each day.", body = Page<BalanceView>),
        (status = 404, description = "There is no such wallet: `not_found`.", body = ErrorBody),
        Refused
    )
)]
async fn wallet_history(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<Json<Page<BalanceView>>, ApiError> {
    let row = find(&state, &id).await?;
    let days = statement::history(state.store(), &row, engine::clock::now()).await?;
    Ok(Json(Page::complete(days)))
}

async fn show(state: &AdminState, id: WalletId) -> Result<Json<WalletSpendingView>, ApiError> {
    let found = state.store().find_spending(id, spending_now()).await?;
    let found = found.ok_or_else(|| ApiError::not_found("wallet", id))?;
    Ok(Json(WalletSpendingView::from(found)))
}

/// A query that sums the spending of the current day and month.
fn spending_now() -> WalletQuery {
    let now: UnixMs = engine::clock::now();
    WalletQuery {
        day: day_start(now),
        month: month_start(now),
        ..WalletQuery::default()
    }
}

/// Parses the id in a path. An invalid id is answered like an unknown wallet.
pub(super) fn wallet_id(id: &str) -> Result<WalletId, ApiError> {
    WalletId::parse(id).map_err(|_| ApiError::not_found("wallet", id))
}

pub(super) async fn find(state: &AdminState, id: &str) -> Result<WalletRow, ApiError> {
    let id = wallet_id(id)?;
    let found = state.store().find_wallet(&id.to_string()).await?;
    found.ok_or_else(|| ApiError::not_found("wallet", id))
}

fn not_negative(param: &str, amount: Option<Credits>) -> Result<Micro, ApiError> {
    let amount = amount.map_or(Micro::ZERO, |Credits(amount)| amount);
    if amount.is_negative() {
        return Err(ApiError::invalid(param, "The amount must not be negative."));
    }
    Ok(amount)
}

/// Adds the member `name` to an error, because the store refuses no other text here.
fn with_name_param(error: store::StoreError) -> ApiError {
    let blames_name = matches!(
        error,
        store::StoreError::Invalid(_) | store::StoreError::Taken { .. }
    );
    let error = ApiError::from(error);
    if blames_name {
        return error.with_param("name");
    }
    error
}
