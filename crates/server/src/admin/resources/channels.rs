//! `/admin/v1/channels`: lists channels with their health, switches them, and sends a small test call through one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use engine::ProbeOutcome;
use ledger::{MINUTE_MS, UnixMs};
use protocol::{Dialect, Kind};
use serde::{Deserialize, Serialize};
use store::{AuditAction, Dimension, UsageQuery, UsageRow};
use upstream::BreakerState;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::models::unusable_reason;
use crate::admin::access::{Operator, Viewer};
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::{Json, Path, Query};
use crate::admin::api::page::{Page, ShortListQuery};
use crate::admin::api::state::AdminState;
use crate::config::Channel;
use crate::gateway::InForce;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list_channels))
        .routes(routes!(switch_channel))
        .routes(routes!(probe_channel))
}

/// An upstream account. The counts of calls and connections are those of the node that answers; the times are measured
/// over all nodes.
#[derive(Debug, Serialize, ToSchema)]
struct ChannelView {
    name: String,
    preset: &'static str,
    base_url: String,
    protocols: Vec<&'static str>,
    /// Whether it may serve calls. If `false`, no new call is sent to it.
    enabled: bool,
    /// `up`, `degraded` (one call tests whether it works again), `down` (failing), `paused` (the upstream refuses its
    /// credential) or `off` (it is disabled, or has no credential).
    state: &'static str,
    /// The state of its breaker: `closed`, `probe`, `open` or `taken_out`. Null if it is off.
    #[schema(required)]
    breaker: Option<&'static str>,
    /// A description of the problem, if there is one.
    #[schema(required)]
    reason: Option<String>,
    /// The last 60 minutes, the oldest first.
    minutes: Vec<MinuteView>,
    last_hour: HourView,
    /// Errors of the last hour: `failed`, `overloaded`, `credential_refused`.
    errors_by_kind: BTreeMap<&'static str, u64>,
    /// The time to the first byte, over the calls of the last hour.
    #[schema(required)]
    first_byte_p50_ms: Option<u64>,
    #[schema(required)]
    first_byte_p95_ms: Option<u64>,
    /// Open connections of this node: those of calls and sessions, and idle ones kept for the next calls.
    connections_open: usize,
    /// The number of models that have a route to it.
    models: usize,
}

/// The calls of one minute.
#[derive(Debug, Serialize, ToSchema)]
struct MinuteView {
    /// When it began.
    at: i64,
    requests: u32,
    errors: u32,
}

/// The calls of an hour.
#[derive(Debug, Serialize, ToSchema)]
struct HourView {
    requests: u64,
    errors: u64,
}

/// The outcome of a test call through a channel.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProbeView {
    ok: bool,
    /// The status of the upstream's answer.
    #[schema(required)]
    status: Option<u16>,
    message: String,
    total_ms: u64,
}

/// List all channels of the configuration.
#[utoipa::path(
    get,
    path = "/channels",
    tag = "channels",
    params(ShortListQuery),
    responses((status = 200, description = "All channels.", body = Page<ChannelView>), Refused)
)]
async fn list_channels(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Query(query): Query<ShortListQuery>,
) -> Result<Json<Page<ChannelView>>, ApiError> {
    let in_force = state.keeper.in_force();
    let now = UnixMs::new(jiff::Timestamp::now().as_millisecond());
    let last_hour = UsageQuery {
        by: vec![Dimension::Channel],
        ..UsageQuery::between(UnixMs::new(now.get() - 60 * MINUTE_MS), now, now)
    };
    let times = state.store().usage(last_hour).await?;
    let channels = in_force.config.channels.iter();
    let channels = channels.map(|channel| view(&state, &in_force, channel, &times, now));
    let page = Page::of_list(channels.collect(), &query, |channel| &channel.name)?;
    Ok(Json(page))
}

/// A change to a channel.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChannelChange {
    /// `false` takes the channel out of use. Running calls and open tasks still finish.
    enabled: bool,
}

/// Whether a channel may serve calls.
#[derive(Debug, Serialize, ToSchema)]
struct SwitchedChannel {
    name: String,
    enabled: bool,
    /// Why it cannot be used now.
    #[schema(required)]
    reason: Option<String>,
    /// Models that cannot be called now because none of their channels can be used.
    models_out: Vec<String>,
}

/// Switch a channel on or off. The change is saved with the configuration and is in force when this answers.
#[utoipa::path(
    patch,
    path = "/channels/{name}",
    tag = "channels",
    params(("name" = String, Path, description = "The name of the channel.")),
    request_body = ChannelChange,
    responses(
        (status = 200, description = "The channel, and the models that it takes with it.", body = SwitchedChannel),
        (status = 404, description = "There is no such channel: `not_found`.", body = ErrorBody),
        (status = 409, description = "Somebody else has changed the configuration at the same time: `version_conflict`; or the gateway may not write its file: `config_not_writable`.", body = ErrorBody),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused,
    )
)]
async fn switch_channel(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Path(name): Path<String>,
    Json(change): Json<ChannelChange>,
) -> Result<Json<SwitchedChannel>, ApiError> {
    // The change runs in its own task, so that a client that disconnects does not interrupt it.
    let (keeper, channel) = (Arc::clone(&state.keeper), name.clone());
    let switching =
        tokio::spawn(async move { keeper.switch_channel(channel, change.enabled, &actor).await });
    let in_force = switching.await.map_err(|error| {
        tracing::error!(%error, "enabling or disabling a channel has panicked");
        ApiError::internal()
    })??;
    Ok(Json(SwitchedChannel {
        enabled: change.enabled,
        reason: in_force.idle_reason(&name).map(str::to_owned),
        models_out: in_force.uncallable_models(&name),
        name,
    }))
}

fn view(
    state: &AdminState,
    in_force: &InForce,
    channel: &Channel,
    times: &[UsageRow],
    now: UnixMs,
) -> ChannelView {
    let catalog = state.engine.catalog();
    let live = catalog.channel(&channel.name);
    let in_use = live.filter(|_| !catalog.is_disabled(&channel.name));
    let breaker = in_use.map(|live| live.state(Instant::now));
    let minutes = live.map(|live| live.history(Instant::now()));
    let minutes = minutes
        .as_ref()
        .map(<[_; 60]>::as_slice)
        .unwrap_or_default();
    let sum = |count: fn(&upstream::MinuteOfCalls) -> u32| {
        minutes.iter().map(|it| u64::from(count(it))).sum::<u64>()
    };
    let kinds = [
        ("failed", sum(|it| it.failed)),
        ("overloaded", sum(|it| it.overloaded)),
        ("credential_refused", sum(|it| it.credential_refused)),
    ];
    let first_byte = times
        .iter()
        .find(|row| *row.series.channel == *channel.name);
    let percentile = |of_hundred| {
        let micros = first_byte?.totals.first_byte.percentile(of_hundred);
        micros.map(|micros| micros / 1_000)
    };
    let this_minute = now.get() - now.get().rem_euclid(MINUTE_MS);
    let ages = (0..60_i64).rev();
    let shown = ages.enumerate().map(|(place, age)| {
        let calls = minutes.get(place).copied().unwrap_or_default();
        MinuteView {
            at: this_minute - age * MINUTE_MS,
            requests: calls.requests,
            errors: calls.errors(),
        }
    });
    let routed = |model: &&crate::config::Model| {
        model
            .routes
            .iter()
            .any(|route| route.channel == channel.name)
    };
    ChannelView {
        name: channel.name.clone(),
        preset: channel.preset.as_str(),
        base_url: channel.base_url(),
        protocols: channel.protocols().iter().map(|it| it.as_str()).collect(),
        enabled: channel.enabled,
        state: breaker.map_or("off", state_name),
        breaker: breaker.map(breaker_state_name),
        reason: match breaker {
            None => in_force.idle_reason(&channel.name).map(str::to_owned),
            Some(breaker) => unusable_reason(breaker).map(str::to_owned),
        },
        minutes: shown.collect(),
        last_hour: HourView {
            requests: sum(|it| it.requests),
            errors: sum(upstream::MinuteOfCalls::errors),
        },
        errors_by_kind: kinds.into_iter().filter(|(_, count)| *count > 0).collect(),
        first_byte_p50_ms: percentile(50),
        first_byte_p95_ms: percentile(95),
        connections_open: live.map_or(0, upstream::Channel::open_connections),
        models: in_force.config.models.iter().filter(routed).count(),
    }
}

fn state_name(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "up",
        BreakerState::Probe => "degraded",
        BreakerState::Open { .. } => "down",
        BreakerState::CredentialRefused { .. } => "paused",
    }
}

fn breaker_state_name(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "closed",
        BreakerState::Probe => "probe",
        BreakerState::Open { .. } => "open",
        BreakerState::CredentialRefused { .. } => "taken_out",
    }
}

/// Send one small call through a channel. Nobody is charged for it.
#[utoipa::path(
    post,
    path = "/channels/{name}/probe",
    tag = "channels",
    params(("name" = String, Path, description = "The name of the channel.")),
    responses(
        (status = 200, description = "How the call went.", body = ProbeView),
        (status = 404, description = "There is no such channel in use: `not_found`.", body = ErrorBody),
        Refused,
    )
)]
async fn probe_channel(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Path(name): Path<String>,
) -> Result<Json<ProbeView>, ApiError> {
    if state.engine.catalog().channel(&name).is_none() {
        return Err(ApiError::not_found("channel in use", name));
    }
    // Write the audit row first, so that no call that costs us money goes unrecorded.
    let action = AuditAction {
        action: "channel.probe",
        target: name.clone(),
        before: None,
        after: None,
    };
    state.store().note_action(action, &actor).await?;
    let outcome = match state.engine.catalog().channel(&name) {
        // The catalog has no routes to a disabled channel, so use the routes of the configured models.
        Some(channel) if state.engine.catalog().is_disabled(&name) => {
            Some(probe_disabled(&state, channel).await)
        }
        _ => state.engine.probe_channel(&name).await,
    };
    let outcome = outcome.ok_or_else(|| ApiError::not_found("channel in use", name))?;
    Ok(Json(outcome.into()))
}

/// Sends one small call through a disabled channel, so that an operator sees whether it works again.
async fn probe_disabled(state: &AdminState, channel: &upstream::Channel) -> ProbeOutcome {
    let (kind, dialect, model) = small_model(&state.keeper.in_force(), channel.name());
    state
        .engine
        .try_channel(channel, kind, dialect, &model)
        .await
}

/// Finds a model that has a route to this channel and a kind with a small test call. If there is no such model, returns
/// a kind without a test call, so that the engine returns the proper error.
fn small_model(in_force: &InForce, channel: &str) -> (Kind, Option<Dialect>, String) {
    for model in &in_force.config.models {
        let route = model.routes.iter().find(|route| route.channel == channel);
        if let (Some(route), Kind::Text | Kind::Embedding) = (route, model.kind) {
            return (model.kind, route.dialect, route.model.clone());
        }
    }
    (Kind::Video, None, String::new())
}

impl From<ProbeOutcome> for ProbeView {
    fn from(outcome: ProbeOutcome) -> Self {
        Self {
            ok: outcome.is_ok,
            status: outcome.status,
            message: outcome.message,
            total_ms: u64::try_from(outcome.total.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
