//! Delivers callbacks, which report that a task has ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use store::{CallbackOutcome, CallbackReport, CallbackRow, WalletId};
use upstream::{ExternalUrl, Post};

use super::backoff;
use crate::clock;
use crate::engine::Engine;

/// The time limit of an attempt, from the DNS lookup to the head of the response (C2).
const ATTEMPT_WITHIN: Duration = Duration::from_secs(10);
/// The lease of a callback. It is longer than one attempt plus the write of its outcome.
const LEASE: Duration = Duration::from_secs(60);
/// Limits on concurrent deliveries, so that a slow receiver does not delay others (C3).
const WORKERS: usize = 64;
const WORKERS_PER_HOST: usize = 4;
const WORKERS_PER_WALLET: usize = 16;
/// The pause before a callback is claimed again because its host or wallet was busy.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[derive(Debug, Default)]
struct ActiveDeliveries {
    hosts: HashMap<String, usize>,
    wallets: HashMap<WalletId, usize>,
    all: usize,
}

/// The slot of one delivery. Dropping it frees the slot.
struct DeliverySlot {
    busy: Arc<Mutex<ActiveDeliveries>>,
    host: String,
    wallet: WalletId,
}

impl DeliverySlot {
    fn take(busy: &Arc<Mutex<ActiveDeliveries>>, host: String, wallet: WalletId) -> Option<Self> {
        let mut now = busy.lock();
        let has_room = now.hosts.get(&host).is_none_or(|it| *it < WORKERS_PER_HOST)
            && now
                .wallets
                .get(&wallet)
                .is_none_or(|it| *it < WORKERS_PER_WALLET);
        if !has_room {
            return None;
        }
        *now.hosts.entry(host.clone()).or_default() += 1;
        *now.wallets.entry(wallet).or_default() += 1;
        now.all += 1;
        Some(Self {
            busy: Arc::clone(busy),
            host,
            wallet,
        })
    }
}

impl Drop for DeliverySlot {
    fn drop(&mut self) {
        let mut busy = self.busy.lock();
        busy.all = busy.all.saturating_sub(1);
        leave(&mut busy.hosts, &self.host);
        leave(&mut busy.wallets, &self.wallet);
    }
}

fn leave<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, who: &K) {
    if let Some(count) = counts.get_mut(who) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(who);
        }
    }
}

impl Engine {
    /// Delivers callbacks for as long as the future is polled. The engine waits for running attempts at shutdown.
    pub async fn deliver_callbacks(self: Arc<Self>) {
        let busy = Arc::new(Mutex::new(ActiveDeliveries::default()));
        let look_every = backoff::look_every(self.settings.tasks.poll_first);
        loop {
            let free = u32::try_from(WORKERS.saturating_sub(busy.lock().all)).unwrap_or(0);
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
                        let place = DeliverySlot::take(&busy, host, row.wallet);
                        let engine = Arc::clone(&self);
                        self.tasks.spawn(async move {
                            let outcome = match &place {
                                Some(_) => engine.deliver(&row).await,
                                None => CallbackOutcome::NotTried { after: BUSY_PAUSE },
                            };
                            engine.note_attempt(&row, outcome).await;
                            drop(place);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_the_places() {
        let busy = Arc::new(Mutex::new(ActiveDeliveries::default()));
        let (one, other) = (WalletId::random(), WalletId::random());
        let take = |host: &str, wallet| DeliverySlot::take(&busy, host.to_owned(), wallet);
        let mut places: Vec<DeliverySlot> = (0..WORKERS_PER_HOST)
            .filter_map(|_| take("a", one))
            .collect();
        assert_eq!(places.len(), WORKERS_PER_HOST);
        assert!(take("a", other).is_none(), "the host is busy");
        places.extend((0..WORKERS).filter_map(|host| take(&host.to_string(), one)));
        assert_eq!(places.len(), WORKERS_PER_WALLET);
        assert!(take("b", other).is_some());
        places.clear();
        assert_eq!(busy.lock().all, 0);
        assert!(busy.lock().hosts.is_empty() && busy.lock().wallets.is_empty());
    }
}
