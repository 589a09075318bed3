//! Delivers alerts to webhooks. Any node delivers what any node has queued.

use std::sync::Arc;
use std::time::Duration;

use store::{ALERT_DELIVERIES_MAX, DeliveryNote, DeliveryOutcome, DeliveryRow};
use tokio::sync::Semaphore;

use super::webhook;
use crate::clock;
use crate::engine::Engine;
use crate::task::backoff::jittered;

/// The lease of a delivery. It is longer than an attempt and the write of its outcome.
const LEASE: Duration = Duration::from_secs(60);
/// Deliveries at the same time. The store lets all rules together have this many under way, and limits each rule to its
/// own share, so a webhook that hangs delays no other rule. Each delivery is one waiting socket.
const WORKERS: usize = ALERT_DELIVERIES_MAX;
/// How often due deliveries are searched for.
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
            // Never waits: at most as many deliveries were claimed as there are free workers.
            let Ok(place) = Arc::clone(free).acquire_owned().await else {
                return;
            };
            let engine = Arc::clone(self);
            self.tasks.spawn(async move {
                let note = DeliveryNote {
                    claim: row.claim,
                    outcome: engine.attempt(&row).await,
                    now: clock::steady(),
                };
                if let Err(error) = engine.store.note_delivery(note).await {
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
