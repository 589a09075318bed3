//! Sends queued telemetry to the operator's collector in batches, until the node has stopped.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::deliver::{Undelivered, deliver};
use super::finished_call::FinishedCall;
use super::metrics::{self, PointTimes};
use super::otlp::Attribute;
use super::queue::Telemetry;
use super::spans;
use crate::clock;
use crate::engine::Engine;
use crate::metrics::telemetry_counts::DropReason;

/// The maximum number of calls in one delivery, which is about half a megabyte.
const BATCH_CALLS_MAX: usize = 256;
/// How long a batch that is not full waits for more calls.
const GATHER_FOR: Duration = Duration::from_secs(1);
/// How long a stopping node continues to send queued telemetry.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);

impl Engine {
    /// Sends telemetry until `stop`, and then sends the rest of the queue for a few seconds. Returns immediately if
    /// there is no collector.
    pub async fn export_telemetry(self: Arc<Self>, stop: CancellationToken) {
        let Some(telemetry) = &self.telemetry else {
            return;
        };
        let Some(calls) = telemetry.take_calls() else {
            return;
        };
        let late = async {
            stop.cancelled().await;
            tokio::time::sleep(FLUSH_WITHIN).await;
        };
        let metrics = async {
            if let Some(every) = telemetry.metrics_every {
                export_metrics(&self, telemetry, every, &stop).await;
            }
        };
        tokio::select! {
            _ = async { tokio::join!(export(telemetry, calls, &stop), metrics) } => {}
            () = late => {
                let spans = telemetry.drop_pending();
                tracing::warn!(spans, "the collector took too long; the last spans are lost");
            }
        }
    }
}

/// Sends batches until the node stops and the queue is empty.
async fn export(
    telemetry: &Telemetry,
    mut calls: mpsc::Receiver<FinishedCall>,
    stop: &CancellationToken,
) {
    let mut batch = Vec::new();
    let mut health = Health::of("spans");
    while gather(&mut calls, &mut batch, stop).await {
        health.log_change(&send(telemetry, &batch, stop).await);
        batch.clear();
    }
}

/// Sends the metrics at intervals, and once more at the end.
async fn export_metrics(
    engine: &Engine,
    telemetry: &Telemetry,
    every: Duration,
    stop: &CancellationToken,
) {
    // Computed once, so that it does not change when the wall clock is set.
    let uptime_ms = i64::try_from(engine.started.elapsed().as_millis()).unwrap_or(0);
    let started_ms = clock::now().get().saturating_sub(uptime_ms);
    let mut health = Health::of("metrics");
    let mut is_last = false;
    while !is_last {
        let _ = tokio::time::timeout(every, stop.cancelled()).await;
        is_last = stop.is_cancelled();
        let text = engine.scrape_with_exemplars().await;
        let times = PointTimes::new(started_ms, clock::now().get());
        let body = metrics::request(resource(telemetry), &text, times);
        let sent = match encoded(&body) {
            Ok(body) => deliver_to(telemetry, "/v1/metrics", body, stop)
                .await
                .map(drop)
                .map_err(|undelivered| undelivered.error),
            Err(error) => Err(error),
        };
        health.log_change(&sent);
    }
}

/// Whether the collector accepts one kind of telemetry. There is one log line when deliveries begin to fail and one
/// when they succeed again, however many deliveries fail in between.
struct Health {
    what: &'static str,
    is_failing: bool,
}

impl Health {
    fn of(what: &'static str) -> Self {
        let is_failing = false;
        Self { what, is_failing }
    }

    fn log_change(&mut self, sent: &Result<(), String>) {
        let what = self.what;
        match sent {
            Ok(()) if self.is_failing => {
                tracing::info!(what, "the collector takes telemetry again");
            }
            Err(error) if !self.is_failing => {
                tracing::warn!(
                    what,
                    error,
                    "the collector does not take telemetry, which is lost"
                );
            }
            _ => {}
        }
        self.is_failing = sent.is_err();
    }
}

/// Waits for calls and takes up to a batch of them. Returns `false` if the node stops and the queue is empty.
async fn gather(
    calls: &mut mpsc::Receiver<FinishedCall>,
    batch: &mut Vec<FinishedCall>,
    stop: &CancellationToken,
) -> bool {
    tokio::select! {
        count = calls.recv_many(batch, BATCH_CALLS_MAX) => if count == 0 {
            return false;
        },
        () = stop.cancelled() => {
            // Calls that are already queued can still be received.
            calls.close();
            return calls.recv_many(batch, BATCH_CALLS_MAX).await > 0;
        }
    }
    let until = Instant::now() + GATHER_FOR;
    while batch.len() < BATCH_CALLS_MAX {
        let room = BATCH_CALLS_MAX - batch.len();
        let more = tokio::select! {
            count = calls.recv_many(batch, room) => count,
            () = tokio::time::sleep_until(until) => 0,
            () = stop.cancelled() => 0,
        };
        if more == 0 {
            break;
        }
    }
    true
}

/// Sends one batch and counts its spans by outcome. The error is for the log.
async fn send(
    telemetry: &Telemetry,
    batch: &[FinishedCall],
    stop: &CancellationToken,
) -> Result<(), String> {
    let spans: u64 = batch.iter().map(|call| call.trace.spans()).sum();
    let body = match encoded(&spans::request(resource(telemetry), batch)) {
        Ok(body) => body,
        Err(error) => {
            telemetry.dropped(DropReason::Refused, spans);
            return Err(error);
        }
    };
    match deliver_to(telemetry, "/v1/traces", body, stop).await {
        Ok(rejected) => {
            let rejected = rejected.min(spans);
            telemetry.sent(spans - rejected);
            if rejected > 0 {
                telemetry.dropped(DropReason::Refused, rejected);
                return Err(format!("it rejected {rejected} of {spans} spans"));
            }
            Ok(())
        }
        Err(undelivered) => {
            telemetry.dropped(undelivered.reason, spans);
            Err(undelivered.error)
        }
    }
}

async fn deliver_to(
    telemetry: &Telemetry,
    path: &str,
    body: Bytes,
    stop: &CancellationToken,
) -> Result<u64, Undelivered> {
    let (endpoint, headers) = (&telemetry.endpoint, &telemetry.headers);
    deliver(endpoint, headers, path, body, stop).await
}

/// Writes a body as JSON. Texts and finite numbers can always be serialised.
fn encoded(body: &impl Serialize) -> Result<Bytes, String> {
    let body = serde_json::to_vec(body).map_err(|error| error.to_string())?;
    Ok(body.into())
}

/// The attributes that describe this node.
fn resource(telemetry: &Telemetry) -> Vec<Attribute<'_>> {
    vec![
        Attribute::text("service.name", telemetry.service_name.as_str()),
        Attribute::text("service.version", env!("CARGO_PKG_VERSION")),
        Attribute::text("service.instance.id", telemetry.node.as_str()),
    ]
}
