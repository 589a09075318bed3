//! `/admin/v1/alerts`: alerts, and the rules that send them.

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use store::{AlertCursor, AlertKind, AlertQuery, Role, RuleId, StoreError};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::filter;
use crate::admin::access::{Operator, Viewer};
use crate::admin::api::amount::Credits;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::{Json, Path, Query};
use crate::admin::api::page::{Cursor, Page, PageLimit, ShortListQuery, cursor_position};
use crate::admin::api::state::AdminState;
use crate::operations::alerts::{self, RuleError, RuleRequest};
use crate::operations::views::{AlertView, NewRuleView, RuleTestView, RuleView};

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list_alerts))
        .routes(routes!(list_alert_rules, create_alert_rule))
        .routes(routes!(remove_alert_rule))
        .routes(routes!(test_alert_rule))
}

/// The condition that an alert reports.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AlertKind)]
enum KindName {
    /// The balance of a wallet is below the amount that was set for it.
    LowBalance,
    /// A key has used 80 % or all of a limit.
    KeyLimit,
    /// A channel is not usable.
    ChannelDown,
    /// More calls fail than usual.
    ErrorRate,
    /// Finished calls cannot be booked.
    StuckCloses,
}

impl From<KindName> for AlertKind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::LowBalance => Self::LowBalance,
            KindName::KeyLimit => Self::KeyLimit,
            KindName::ChannelDown => Self::ChannelDown,
            KindName::ErrorRate => Self::ErrorRate,
            KindName::StuckCloses => Self::StuckCloses,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only alerts that have not ended.
    #[serde(default)]
    open: bool,
    /// Only alerts of this kind.
    #[param(inline)]
    kind: Option<KindName>,
    /// Only alerts about this wallet and its keys, by its id or its name.
    wallet: Option<String>,
    /// The number of rows, 1 to 500.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 50)]
    limit: PageLimit,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor>,
}

/// List alerts, newest first. Ended ones are kept for 90 days.
#[utoipa::path(
    get,
    path = "/alerts",
    tag = "alerts",
    params(ListQuery),
    responses((status = 200, description = "A page of alerts.", body = Page<AlertView>), Refused)
)]
async fn list_alerts(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<AlertView>>, ApiError> {
    let limit = query.limit;
    let rows = state.store().alerts(AlertQuery {
        only_open: query.open,
        kind: query.kind.map(AlertKind::from),
        wallet: filter::wallet(state.store(), query.wallet).await?,
        before: cursor_position(query.cursor.as_ref())?.map(AlertCursor),
        limit: limit.and_one(),
    });
    Ok(Json(Page::of(
        rows.await?,
        limit,
        |row| row.cursor.0,
        AlertView::from,
    )))
}

/// List the rules that send alerts, oldest first.
#[utoipa::path(
    get,
    path = "/alerts/rules",
    tag = "alerts",
    params(ShortListQuery),
    responses((status = 200, description = "A page of rules. There are at most 100.", body = Page<RuleView>), Refused)
)]
async fn list_alert_rules(
    Viewer(actor): Viewer,
    State(state): State<AdminState>,
    Query(query): Query<ShortListQuery>,
) -> Result<Json<Page<RuleView>>, ApiError> {
    let rows = state.store().alert_rules().await?.into_iter();
    let rules = if actor.role >= Role::Operator {
        rows.map(RuleView::from).collect()
    } else {
        rows.map(RuleView::without_secrets).collect()
    };
    Ok(Json(Page::of_list(rules, &query, |rule| &rule.id)?))
}

/// A rule that sends alerts to a webhook.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertRuleCreation)]
struct CreateRule {
    /// At least one. A rule for one wallet can only have `low_balance` and `key_limit`.
    #[schema(min_items = 1)]
    kinds: Vec<KindName>,
    /// Alerts are sent to this URL by POST. The address must be public, or allowed by `[outbound]`.
    #[schema(example = "https://example.com/hooks/tollgate")]
    url: String,
    /// Only alerts about this wallet and its keys, by its id or its name.
    wallet: Option<String>,
    /// The balance below which an alert is sent. In a rule for all wallets it applies to wallets that have no amount of
    /// their own.
    below: Option<Credits>,
}

/// Create a rule. The answer has the secret that signs its messages, which is never shown again.
#[utoipa::path(
    post,
    path = "/alerts/rules",
    tag = "alerts",
    request_body = CreateRule,
    responses(
        (status = 201, description = "The rule, with its secret.", body = NewRuleView),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused
    )
)]
async fn create_alert_rule(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Json(new): Json<CreateRule>,
) -> Result<(StatusCode, Json<NewRuleView>), ApiError> {
    let request = RuleRequest {
        kinds: new.kinds.into_iter().map(AlertKind::from).collect(),
        url: new.url,
        wallet: filter::wallet(state.store(), new.wallet).await?,
        below: new.below.map(|Credits(below)| below),
    };
    let created = alerts::create(state.store(), state.engine.guarded(), request, &actor).await;
    let (row, secret) = created.map_err(|error| match error {
        RuleError::Url(error) => {
            ApiError::invalid("url", format!("The address is refused: {error}."))
        }
        RuleError::Store(StoreError::NotFound { what: "wallet", .. }) => {
            ApiError::invalid("wallet", "There is no wallet with this id or name.")
        }
        RuleError::Store(error) => ApiError::from(error),
    })?;
    let view = NewRuleView {
        rule: row.into(),
        secret,
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Remove a rule, with the messages that are not delivered yet.
#[utoipa::path(
    delete,
    path = "/alerts/rules/{id}",
    tag = "alerts",
    params(("id" = String, Path, description = "The id of the rule, `rul_...`.")),
    responses(
        (status = 204, description = "The rule is gone."),
        (status = 404, description = "There is no such rule: `not_found`.", body = ErrorBody),
        Refused
    )
)]
async fn remove_alert_rule(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let removed = state.store().remove_alert_rule(rule_id(&id)?, &actor);
    removed.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Send a message of the type `alert.test` to the webhook of a rule, once and immediately.
#[utoipa::path(
    post,
    path = "/alerts/rules/{id}/test",
    tag = "alerts",
    params(("id" = String, Path, description = "The id of the rule, `rul_...`.")),
    responses(
        (status = 200, description = "Whether it was delivered, and why not.", body = RuleTestView),
        (status = 404, description = "There is no such rule: `not_found`.", body = ErrorBody),
        Refused
    )
)]
async fn test_alert_rule(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<Json<RuleTestView>, ApiError> {
    let (store, guarded) = (state.store(), state.engine.guarded());
    let problem = alerts::test(store, guarded, rule_id(&id)?, &actor).await?;
    Ok(Json(problem.into()))
}

/// Parses the id in a path. An invalid id is answered like an unknown rule.
fn rule_id(id: &str) -> Result<RuleId, ApiError> {
    RuleId::parse(id).map_err(|_| ApiError::not_found("rule", id))
}
