//! `/admin/v1/models`: every configured model, whether it can be called, and what its routes cost.

use axum::extract::State;
use engine::RouteSpec;
use http_server::abilities;
use ledger::{PriceCard, PriceKey};
use serde::Serialize;
use serde_json::{Value, json};
use upstream::BreakerState;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, Refused};
use crate::admin::api::extract::{Json, Query};
use crate::admin::api::page::{Page, ShortListQuery};
use crate::admin::api::state::AdminState;
use crate::config::{Model, Sources, protocols_for};
use crate::gateway::InForce;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(list_models))
}

/// A configured model.
#[derive(Debug, Serialize, ToSchema)]
struct ModelView {
    id: String,
    kind: &'static str,
    callable: bool,
    /// Why it cannot be called.
    #[schema(required)]
    reason: Option<String>,
    #[schema(required)]
    context_tokens: Option<u64>,
    #[schema(required)]
    output_tokens_max: Option<u64>,
    abilities: Vec<&'static str>,
    /// The protocols of its routes that can serve this kind of model.
    protocols: Vec<&'static str>,
    /// The price card, in credits.
    #[schema(required, value_type = Option<Object>)]
    price: Option<Value>,
    routes: Vec<RouteView>,
    /// How routes of the same priority are ordered: `priority` (by weight only), `latency` or `cost`.
    order: &'static str,
    /// Whether the calls of a conversation prefer the same route.
    sticky: bool,
    /// Models that may answer if no route of this one can, in the order in which they are tried.
    fallbacks: Vec<String>,
    source: SourceView,
}

/// Where the values of a model come from: `file`, `catalog`, `catalog-file`, `channel` or `default`.
#[derive(Debug, Serialize, ToSchema)]
struct SourceView {
    kind: &'static str,
    created: &'static str,
    routes: &'static str,
    price: &'static str,
    profile: &'static str,
    /// The factor between the cost and the price. Null if the price was not computed from a cost.
    #[schema(required)]
    markup: Option<String>,
}

/// A route of a model.
#[derive(Debug, Serialize, ToSchema)]
struct RouteView {
    channel: String,
    /// The upstream's name for the model.
    model: String,
    priority: u32,
    weight: u32,
    /// Requests per minute on each node.
    #[schema(required, value_type = Option<i64>)]
    rpm: Option<u32>,
    /// Tokens per minute on each node.
    #[schema(required, value_type = Option<i64>)]
    tpm: Option<u32>,
    usable: bool,
    /// Why it is not usable.
    #[schema(required)]
    reason: Option<String>,
    /// What the upstream charges, in credits. Null if that is not known.
    #[schema(required, value_type = Option<Object>)]
    cost: Option<Value>,
    /// The price less the cost, as a share of the price, such as `20%`: the smallest over all units.
    #[schema(required)]
    margin: Option<String>,
}

/// List all models of the configuration.
#[utoipa::path(
    get,
    path = "/models",
    tag = "models",
    params(ShortListQuery),
    responses((status = 200, description = "All models.", body = Page<ModelView>), Refused)
)]
async fn list_models(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Query(query): Query<ShortListQuery>,
) -> Result<Json<Page<ModelView>>, ApiError> {
    let in_force = state.keeper.in_force();
    let models = in_force.config.models.iter();
    let models = models.map(|model| view(&state, &in_force, model));
    let page = Page::of_list(models.collect(), &query, |model| &model.id)?;
    Ok(Json(page))
}

impl SourceView {
    fn of(sources: &Sources) -> Self {
        Self {
            kind: sources.kind.as_str(),
            created: sources.created.as_str(),
            routes: sources.routes.as_str(),
            price: sources.price.as_str(),
            profile: sources.profile.as_str(),
            markup: sources.markup.map(|markup| markup.to_string()),
        }
    }
}

fn view(state: &AdminState, in_force: &InForce, model: &Model) -> ModelView {
    let catalog = state.engine.catalog();
    let unlisted = in_force.unlisted.iter().find(|(id, _)| *id == model.id);
    let reason = match unlisted {
        Some((_, reason)) => Some(reason.clone()),
        None => match catalog.get(&model.id) {
            Some(model) if model.is_callable() => None,
            Some(_) => Some("every route's upstream refuses our credential".to_owned()),
            None => Some("not installed yet".to_owned()),
        },
    };
    let profile = model.profile.clone().over_base();
    let spoken = |protocol: &&upstream::Protocol| {
        let mut routes = model.routes.iter();
        routes.any(|route| {
            catalog
                .channel(&route.channel)
                .is_some_and(|it| it.speaks(**protocol))
        })
    };
    let fitting = protocols_for(model.kind, profile.base).iter();
    ModelView {
        id: model.id.clone(),
        kind: model.kind.as_str(),
        callable: reason.is_none(),
        reason,
        context_tokens: profile.context_tokens,
        output_tokens_max: profile.max_output_tokens,
        abilities: abilities(&profile),
        protocols: fitting.filter(spoken).map(|it| it.as_str()).collect(),
        price: model.price.as_ref().map(|price| json!(price)),
        routes: model
            .routes
            .iter()
            .map(|route| route_view(state, in_force, model, route))
            .collect(),
        order: model.routing.order.as_str(),
        sticky: model.routing.sticky,
        fallbacks: model.routing.fallbacks.clone(),
        source: SourceView::of(&model.sources),
    }
}

fn route_view(
    state: &AdminState,
    in_force: &InForce,
    model: &Model,
    route: &RouteSpec,
) -> RouteView {
    let catalog = state.engine.catalog();
    let reason = match (
        in_force.idle_reason(&route.channel),
        catalog.channel(&route.channel),
    ) {
        (Some(reason), _) => Some(reason.to_owned()),
        (None, None) => Some("no such channel".to_owned()),
        (None, Some(channel)) => {
            unusable_reason(channel.state(std::time::Instant::now)).map(str::to_owned)
        }
    };
    RouteView {
        channel: route.channel.clone(),
        model: route.model.clone(),
        priority: route.priority,
        weight: route.weight,
        rpm: route.limits.rpm,
        tpm: route.limits.tpm,
        usable: reason.is_none(),
        reason,
        cost: route.cost.as_ref().map(|cost| json!(cost)),
        margin: model
            .price
            .as_ref()
            .zip(route.cost.as_ref())
            .and_then(|(price, cost)| margin(price, cost)),
    }
}

/// Why the breaker keeps calls from a channel, or makes it the last choice.
pub(super) fn unusable_reason(state: BreakerState) -> Option<&'static str> {
    match state {
        BreakerState::Closed | BreakerState::Probe => None,
        BreakerState::Open { .. } => {
            Some("its upstream has been failing; other routes are tried first")
        }
        BreakerState::CredentialRefused { .. } => Some("its upstream refuses our credential"),
    }
}

/// The smallest margin over all units: the price less the cost, in percent of the price, with one decimal.
fn margin(price: &PriceCard, cost: &PriceCard) -> Option<String> {
    let left = |key: PriceKey| {
        let (price, cost) = (price.unit_price(key)?.pico(), cost.unit_price(key)?.pico());
        let left = i128::from(price) - i128::from(cost);
        (price > 0).then(|| (left * 1_000).div_euclid(i128::from(price)))
    };
    let smallest = PriceKey::ALL.into_iter().filter_map(left).min()?;
    let (whole, tenth) = (smallest / 10, (smallest % 10).abs());
    let sign = if smallest < 0 && whole == 0 { "-" } else { "" };
    Some(match tenth {
        0 => format!("{sign}{whole}%"),
        tenth => format!("{sign}{whole}.{tenth}%"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_the_smallest_over_all_units() {
        let card = |json: &str| -> PriceCard { serde_json::from_str(json).unwrap() };
        let price = card(r#"{"input":"1","output":"10"}"#);
        for (cost, expected) in [
            (r#"{"input":"0.5","output":"8"}"#, Some("20%")),
            (r#"{"input":"0.5","output":"8.755"}"#, Some("12.4%")),
            (r#"{"input":"1.5","output":"8"}"#, Some("-50%")),
            (r#"{"input":"1.005","output":"8"}"#, Some("-0.5%")),
            (r#"{"image":"1"}"#, None),
        ] {
            assert_eq!(margin(&price, &card(cost)).as_deref(), expected, "{cost}");
        }
        assert_eq!(
            margin(&card(r#"{"input":"0"}"#), &card(r#"{"input":"0"}"#)),
            None
        );
    }
}
