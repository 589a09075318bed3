//! `/admin/v1/channels`: the upstream accounts, their health, and a small call through one.

use std::collections::BTreeMap;
use std::time::Instant;

use axum::extract::{Path, State};
use ledger::UnixMs;
use serde::Serialize;
use store::{Deed, Dimension, UsageQuery, UsageRow};
use upstream::BreakerState;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::models::why_not;
use crate::admin::access::{Operator, Viewer};
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::Json;
use crate::admin::api::page::Page;
use crate::admin::api::state::AdminState;
use crate::config::Channel;
use crate::gateway::InForce;

const MINUTE_MS: i64 = 60_000;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list_channels))
        .routes(routes!(probe_channel))
}

/// An upstream account. Counts of calls and connections are those of the node that answers; the times are of all
/// nodes.
#[derive(Debug, Serialize, ToSchema)]
struct ChannelView {
    name: String,
    preset: &'static str,
    base_url: String,
    protocols: Vec<&'static str>,
    /// `up`, `degraded` (one call tries whether it works again), `down` (failing), `paused` (its credential is
    /// refused) or `off` (it has no credential).
    state: &'static str,
    /// The state of its breaker: `closed`, `probe`, `open` or `taken_out`. Null if it is off.
    #[schema(required)]
    breaker: Option<&'static str>,
    /// What is wrong, in words.
    #[schema(required)]
    reason: Option<String>,
    /// The last 60 minutes, the oldest first.
    minutes: Vec<MinuteView>,
    last_hour: HourView,
    /// Errors of the last hour: `failed`, `overloaded`, `credential_refused`.
    errors_by_kind: BTreeMap<&'static str, u64>,
    /// Of the calls of the last hour.
    #[schema(required)]
    first_byte_p50_ms: Option<u64>,
    #[schema(required)]
    first_byte_p95_ms: Option<u64>,
    /// Connections that are kept open between calls.
    connections_open: usize,
    /// How many models have a route to it.
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

/// How a call through a channel went.
#[derive(Debug, Serialize, ToSchema)]
struct ProbeView {
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
    responses((status = 200, description = "All channels.", body = Page<ChannelView>), Refused)
)]
async fn list_channels(
    _viewer: Viewer,
    State(state): State<AdminState>,
) -> Result<Json<Page<ChannelView>>, ApiError> {
    let in_force = state.keeper.in_force();
    let now = UnixMs::new(jiff::Timestamp::now().as_millisecond());
    let mut query = UsageQuery::between(UnixMs::new(now.get() - 60 * MINUTE_MS), now, now);
    query.by = vec![Dimension::Channel];
    let times = state.store().usage(query).await?;
    let channels = in_force.config.channels.iter();
    let channels = channels.map(|channel| view(&state, &in_force, channel, &times, now));
    Ok(Json(Page::whole(channels.collect())))
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
    let breaker = live.map(|live| live.state(Instant::now));
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
        base_url: channel.base_url().to_owned(),
        protocols: channel.protocols().iter().map(|it| it.as_str()).collect(),
        state: breaker.map_or("off", word),
        breaker: breaker.map(breaker_word),
        reason: match breaker {
            None => in_force.idle_reason(&channel.name).map(str::to_owned),
            Some(breaker) => why_not(breaker).map(str::to_owned),
        },
        minutes: shown.collect(),
        last_hour: HourView {
            requests: sum(|it| it.requests),
            errors: sum(upstream::MinuteOfCalls::errors),
        },
        errors_by_kind: kinds.into_iter().filter(|(_, count)| *count > 0).collect(),
        first_byte_p50_ms: percentile(50),
        first_byte_p95_ms: percentile(95),
        connections_open: live.map_or(0, upstream::Channel::idle_connections),
        models: in_force.config.models.iter().filter(routed).count(),
    }
}

fn word(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "up",
        BreakerState::Probe => "degraded",
        BreakerState::Open { .. } => "down",
        BreakerState::CredentialRefused { .. } => "paused",
    }
}

fn breaker_word(state: BreakerState) -> &'static str {
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
    // The row comes first: a call that costs us money is never made unseen.
    let deed = Deed {
        action: "channel.probe",
        target: name.clone(),
        before: None,
        after: None,
    };
    state.store().note_deed(deed, &actor).await?;
    let outcome = state.engine.probe_channel(&name).await;
    let outcome = outcome.ok_or_else(|| ApiError::not_found("channel in use", name))?;
    Ok(Json(ProbeView {
        ok: outcome.is_ok,
        status: outcome.status,
        message: outcome.message,
        total_ms: u64::try_from(outcome.total.as_millis()).unwrap_or(u64::MAX),
    }))
}
