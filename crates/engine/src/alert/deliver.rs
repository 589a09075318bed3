//! Delivers alerts to webhooks. Every node delivers, whichever node has queued the alert.

use std::sync::Arc;
use std::time::Duration;

use store::{ALERT_DELIVERIES_MAX, DeliveryOutcome, DeliveryReport, DeliveryRow};
use tokio::sync::Semaphore;

use super::webhook;
use crate::clock;
use crate::engine::Engine;
use crate::task::backoff::jittered;

/// The lease of a delivery. It is longer than one attempt plus the write of its outcome.
const LEASE: Duration = Duration::from_secs(60);
/// The maximum number of concurrent deliveries, for all rules together. The store limits each rule to a share, so a
/// webhook that hangs does not delay other rules. Each delivery is one waiting socket.
const WORKERS: usize = ALERT_DELIVERIES_MAX;
/// How often we look for due deliveries.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Engine {
    /// Delivers alerts for as long as the future is polled. The engine waits for running attempts at shutdown.
    pub async fn deliver_alerts(self: Arc<Self>) {
        let free = Arc::new(Semaphore::new(WORKERS));
        let look_every = LOOK_EVERY.min(self.settings.alerts.check_every);
        loop {
            let count = u32::try_from(free.available_permits()).unwrap_or(0);
            if count > 0 {
                match self
                    .store
                    .claim_deliveries(count, LEASE, clock::steady())
                    .await
                {
                    Ok(due) => self.start(due, &free).await,
                    Err(error) => tracing::warn!(%error, "due alerts cannot be claimed"),
                }
            }
            tokio::time::sleep(look_every).await;
        }
    }

    async fn start(self: &Arc<Self>, due: Vec<DeliveryRow>, free: &Arc<Semaphore>) {
        for row in due {
            // This never waits: at most as many deliveries were claimed as there are free workers.
            let Ok(place) = Arc::clone(free).acquire_owned().await else {
                return;
            };
            let engine = Arc::clone(self);
            self.tasks.spawn(async move {
                let report = DeliveryReport {
                    claim: row.claim,
                    outcome: engine.attempt(&row).await,
                    now: clock::steady(),
                };
                if let Err(error) = engine.store.report_delivery(report).await {
                    tracing::warn!(%error, alert = %row.alert.id, "the outcome of an alert's delivery could not be stored");
                }
                drop(place);
            });
        }
    }

    async fn attempt(&self, row: &DeliveryRow) -> DeliveryOutcome {
        let (id, body) = webhook::message(row);
        let sent = webhook::send(&self.guarded, &row.webhook, &id, body).await;
        let Err(error) = sent else {
            return DeliveryOutcome::Delivered;
        };
        let attempt = row.claim.attempt;
        tracing::info!(delivery = id, rule = %row.rule, attempt, %error, "an alert was not delivered");
        let problem = error.to_string();
        let next = usize::try_from(attempt - 1)
            .ok()
            .and_then(|at| self.settings.alerts.retry.get(at));
        match next {
            Some(pause) => DeliveryOutcome::Again {
                after: jittered(*pause),
                problem,
            },
            None => DeliveryOutcome::GivenUp { problem },
        }
    }
}
