//! Delivers callbacks, which report that a task has ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use store::{CallbackOutcome, CallbackReport, CallbackRow};
use tokio::time::Instant;
use upstream::{ExternalUrl, Post};

use super::backoff;
use super::delivery_slots::DeliverySlots;
use crate::clock;
use crate::engine::Engine;

/// The time limit of an attempt, from the DNS lookup to the head of the response (C2).
const ATTEMPT_WITHIN: Duration = Duration::from_secs(10);
/// The lease of a callback. It is longer than one attempt plus the write of its outcome.
const LEASE: Duration = Duration::from_secs(60);
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Engine {
    /// Delivers callbacks for as long as the future is polled. The engine waits for running attempts at shutdown.
    pub async fn deliver_callbacks(self: Arc<Self>) {
        let slots = Arc::new(DeliverySlots::default());
        let look_every = backoff::look_every(self.settings.tasks.poll_first);
        loop {
            let free = u32::try_from(slots.free()).unwrap_or(0);
            if free == 0 {
                tokio::time::sleep(look_every).await;
                continue;
            }
            match self
                .store
                .claim_callbacks(free, LEASE, clock::steady())
                .await
            {
                Ok(due) if due.is_empty() => tokio::time::sleep(look_every).await,
                Ok(due) => {
                    for row in due {
                        let host = ExternalUrl::host_of(&row.url).unwrap_or_default();
                        let slot = slots.take(host, row.wallet, Instant::now());
                        let engine = Arc::clone(&self);
                        self.tasks.spawn(async move {
                            let outcome = match &slot {
                                Ok(_) => engine.deliver(&row).await,
                                Err(pause) => CallbackOutcome::NotTried { after: *pause },
                            };
                            engine.note_attempt(&row, outcome).await;
                            drop(slot);
                        });
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "due callbacks cannot be claimed");
                    tokio::time::sleep(TROUBLE_PAUSE).await;
                }
            }
        }
    }

    async fn deliver(&self, row: &CallbackRow) -> CallbackOutcome {
        let mut headers = HeaderMap::new();
        if let Ok(id) = HeaderValue::try_from(row.claim.task.to_string()) {
            headers.insert(IDEMPOTENCY_KEY, id);
        }
        let post = Post {
            url: &row.url,
            content_type: HeaderValue::from_static("application/json"),
            headers: &headers,
            body: Bytes::copy_from_slice(&row.body),
            within: ATTEMPT_WITHIN,
        };
        let attempt = row.claim.fence;
        let retries = &self.settings.tasks.callback_retry;
        // If a node died during the last attempt, that attempt still counts (C1).
        let is_beyond_last = usize::try_from(attempt).is_ok_and(|it| it > retries.len() + 1);
        if is_beyond_last {
            return CallbackOutcome::GivenUp;
        }
        match self.guarded.post(&post).await {
            Ok(status) if (200..300).contains(&status) => return CallbackOutcome::Delivered,
            Ok(status) => {
                tracing::info!(task = %row.claim.task, attempt, status, "a callback was refused");
            }
            Err(error) => {
                tracing::info!(task = %row.claim.task, attempt, %error, "a callback was not delivered");
            }
        }
        let next = usize::try_from(attempt - 1)
            .ok()
            .and_then(|at| retries.get(at));
        match next {
            Some(pause) => CallbackOutcome::Again {
                after: backoff::jittered(*pause),
            },
            None => CallbackOutcome::GivenUp,
        }
    }

    async fn note_attempt(&self, row: &CallbackRow, outcome: CallbackOutcome) {
        let report = CallbackReport {
            claim: row.claim,
            outcome,
            now: clock::steady(),
        };
        if let Err(error) = self.store.report_callback(report).await {
            tracing::warn!(%error, task = %row.claim.task, "the outcome of a callback could not be stored");
        }
    }
}
