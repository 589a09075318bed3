//! `/usage`: counts calls by time, model, channel, wallet, key and endpoint.

use axum::extract::State;
use ledger::{DAY_MS, UnixMs};
use serde::Deserialize;
use store::{Dimension, StoreError, UsageQuery, UsageStep};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::filter;
use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, Refused};
use crate::admin::api::extract::{Json, Query};
use crate::admin::api::page::Page;
use crate::admin::api::state::AdminState;
use crate::operations::views::UsageView;

const ROWS_MAX: usize = 20_000;
/// The length of the time range if `from` is not given.
const SPAN_MS: i64 = DAY_MS;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(usage))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReportQuery {
    /// Calls that ended at this time or later, in Unix milliseconds. By default, one day before `to`.
    #[param(value_type = Option<i64>)]
    from: Option<UnixMs>,
    /// Calls that ended before this time. By default, now.
    #[param(value_type = Option<i64>)]
    to: Option<UnixMs>,
    /// `minute` (only for the last two days), `hour`, `day` or `month` (in UTC). If not given, the whole range is one
    /// row.
    step: Option<String>,
    /// What to group by: any of `model`, `channel`, `wallet`, `key` and `endpoint`, separated by commas.
    by: Option<String>,
    model: Option<String>,
    channel: Option<String>,
    /// The id or the name of a wallet.
    wallet: Option<String>,
    /// The id of a key.
    key: Option<String>,
    endpoint: Option<String>,
}

/// Count calls
///
/// Requests, errors, tokens, charge, cost, margin and times. Steps without a call have no row. The time range is
/// widened to whole minutes, and to whole hours where it begins or ends more than two days ago.
#[utoipa::path(
    get,
    path = "/usage",
    tag = "usage",
    params(ReportQuery),
    responses((status = 200, description = "By time, and then by what was asked for.", body = Page<UsageView>), Refused),
)]
async fn usage(
    _: Viewer,
    State(state): State<AdminState>,
    Query(report): Query<ReportQuery>,
) -> Result<Json<Page<UsageView>>, ApiError> {
    let store = state.store();
    let now = engine::clock::now();
    let to = report.to.unwrap_or(now);
    let from = report.from.unwrap_or_else(|| to.minus_ms(SPAN_MS));
    if from >= to {
        return Err(ApiError::invalid("from", "`from` must be before `to`."));
    }
    let step = filter::non_empty(report.step)
        .map(|step| read_step(&step))
        .transpose()?;
    if step == Some(UsageStep::Minute) && from < UsageQuery::minutes_since(now) {
        let message = "Minutes are kept for two days. Choose a later time or `step=hour`.";
        return Err(ApiError::invalid("from", message));
    }
    let by = filter::non_empty(report.by)
        .map(|by| read_by(&by))
        .transpose()?
        .unwrap_or_default();
    let query = UsageQuery {
        step,
        by: by.clone(),
        model: filter::non_empty(report.model),
        channel: filter::non_empty(report.channel),
        wallet: filter::wallet(store, report.wallet).await?,
        key: filter::key(report.key)?,
        endpoint: filter::non_empty(report.endpoint),
        rows_max: ROWS_MAX,
        ..UsageQuery::between(from, to, now)
    };
    let rows = store.usage(query).await.map_err(|error| match error {
        StoreError::Invalid(_) => {
            let message = format!(
                "The answer would have more than {ROWS_MAX} rows, or be made of too many totals. Choose a longer step, a shorter time or fewer dimensions."
            );
            ApiError::invalid("step", message)
        }
        error => error.into(),
    })?;
    let mut wallets: Vec<_> = rows.iter().filter_map(|row| row.series.wallet).collect();
    let mut keys: Vec<_> = rows.iter().filter_map(|row| row.series.key).collect();
    wallets.sort_unstable();
    wallets.dedup();
    keys.sort_unstable();
    keys.dedup();
    let names = store.account_names(wallets, keys).await?;
    let rows = rows.iter().map(|row| UsageView::of(row, &by, &names));
    Ok(Json(Page::complete(rows.collect())))
}

fn read_step(text: &str) -> Result<UsageStep, ApiError> {
    match text {
        "minute" => Ok(UsageStep::Minute),
        "hour" => Ok(UsageStep::Hour),
        "day" => Ok(UsageStep::Day),
        "month" => Ok(UsageStep::Month),
        _ => Err(ApiError::invalid(
            "step",
            "A step is `minute`, `hour`, `day` or `month`.",
        )),
    }
}

fn read_by(text: &str) -> Result<Vec<Dimension>, ApiError> {
    let mut by = Vec::new();
    for name in text.split(',') {
        let dimension = match name.trim() {
            "model" => Dimension::Model,
            "channel" => Dimension::Channel,
            "wallet" => Dimension::Wallet,
            "key" => Dimension::Key,
            "endpoint" => Dimension::Endpoint,
            _ => {
                let message =
                    "Calls are counted by `model`, `channel`, `wallet`, `key` and `endpoint`.";
                return Err(ApiError::invalid("by", message));
            }
        };
        if !by.contains(&dimension) {
            by.push(dimension);
        }
    }
    Ok(by)
}
