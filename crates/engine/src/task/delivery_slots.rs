//! Shares the concurrent deliveries of callbacks among hosts and wallets.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::WalletId;
use tokio::time::Instant;

/// Limits on concurrent deliveries, so that a slow receiver does not delay others (C3).
const WORKERS: usize = 64;
const WORKERS_PER_HOST: usize = 4;
const WORKERS_PER_WALLET: usize = 16;
/// The limits of the pause before a callback is claimed again because its host or wallet was busy. Each claim in vain
/// writes to the store twice.
const BUSY_PAUSE_MIN: Duration = Duration::from_secs(1);
const BUSY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The deliveries that are running, and how long the waiting ones must wait.
#[derive(Debug, Default)]
pub(super) struct DeliverySlots(Mutex<ActiveDeliveries>);

#[derive(Debug, Default)]
struct ActiveDeliveries {
    hosts: HashMap<String, Occupancy>,
    wallets: HashMap<WalletId, Occupancy>,
    all: usize,
}

/// How busy one host or wallet is.
#[derive(Debug)]
struct Occupancy {
    running: usize,
    /// How long the last delivery took.
    took: Duration,
    /// When the last free slot was taken.
    full_since: Instant,
    /// When all callbacks that were put back should have had a slot.
    free_at: Instant,
}

impl Occupancy {
    fn idle(now: Instant) -> Self {
        Self {
            running: 0,
            took: Duration::ZERO,
            full_since: now,
            free_at: now,
        }
    }

    /// The pause of one more callback, if no slot is free. Callbacks come back one after the other, at the pace at which
    /// slots become free.
    fn pause(&mut self, slots: usize, now: Instant) -> Option<Duration> {
        if self.running < slots {
            return None;
        }
        let takes = self
            .took
            .max(now.saturating_duration_since(self.full_since));
        let pace = takes / u32::try_from(slots).unwrap_or(u32::MAX);
        let pause = self.free_at.saturating_duration_since(now) + pace;
        self.free_at = now + pause.min(BUSY_PAUSE_MAX);
        Some(pause.clamp(BUSY_PAUSE_MIN, BUSY_PAUSE_MAX))
    }

    fn begun(&mut self, now: Instant) {
        self.running += 1;
        self.full_since = now;
    }

    fn ended(&mut self, took: Duration) {
        self.running = self.running.saturating_sub(1);
        self.took = took;
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.running == 0 && self.free_at <= now
    }
}

/// The slot of one delivery. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct DeliverySlot {
    slots: Arc<DeliverySlots>,
    host: String,
    wallet: WalletId,
    since: Instant,
}

impl DeliverySlots {
    /// The number of deliveries that may start now.
    pub(super) fn free(&self) -> usize {
        WORKERS.saturating_sub(self.0.lock().all)
    }

    /// Takes a slot. If the host or the wallet has none, returns how long the callback should wait.
    pub(super) fn take(
        self: &Arc<Self>,
        host: String,
        wallet: WalletId,
        now: Instant,
    ) -> Result<DeliverySlot, Duration> {
        let mut active = self.0.lock();
        let ActiveDeliveries {
            hosts,
            wallets,
            all,
        } = &mut *active;
        let of_host = occupancy(hosts, &host, now);
        let of_wallet = occupancy(wallets, &wallet, now);
        let pauses = [
            of_host.pause(WORKERS_PER_HOST, now),
            of_wallet.pause(WORKERS_PER_WALLET, now),
        ];
        if let Some(pause) = pauses.into_iter().flatten().max() {
            return Err(pause);
        }
        of_host.begun(now);
        of_wallet.begun(now);
        *all += 1;
        Ok(DeliverySlot {
            slots: Arc::clone(self),
            host,
            wallet,
            since: now,
        })
    }

    fn give_back(&self, slot: &DeliverySlot, now: Instant) {
        let took = now.saturating_duration_since(slot.since);
        let mut active = self.0.lock();
        active.all = active.all.saturating_sub(1);
        if let Some(host) = active.hosts.get_mut(&slot.host) {
            host.ended(took);
        }
        if let Some(wallet) = active.wallets.get_mut(&slot.wallet) {
            wallet.ended(took);
        }
        active.hosts.retain(|_, it| !it.is_idle(now));
        active.wallets.retain(|_, it| !it.is_idle(now));
    }
}

fn occupancy<'a, K: Hash + Eq + Clone>(
    known: &'a mut HashMap<K, Occupancy>,
    of: &K,
    now: Instant,
) -> &'a mut Occupancy {
    known
        .entry(of.clone())
        .or_insert_with(|| Occupancy::idle(now))
}

impl Drop for DeliverySlot {
    fn drop(&mut self) {
        self.slots.give_back(self, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nobody_takes_all_the_places() {
        let slots = Arc::new(DeliverySlots::default());
        let (one, other) = (WalletId::random(), WalletId::random());
        let take = |host: &str, wallet| slots.take(host.to_owned(), wallet, Instant::now());
        let mut places: Vec<DeliverySlot> = (0..WORKERS_PER_HOST)
            .filter_map(|_| take("a", one).ok())
            .collect();
        assert_eq!(places.len(), WORKERS_PER_HOST);
        assert!(take("a", other).is_err(), "the host is busy");
        places.extend((0..WORKERS).filter_map(|host| take(&host.to_string(), one).ok()));
        assert_eq!(places.len(), WORKERS_PER_WALLET);
        assert!(take("b", other).is_ok());
        advance(BUSY_PAUSE_MAX).await;
        places.clear();
        assert_eq!(slots.free(), WORKERS);
        let active = slots.0.lock();
        assert!(active.hosts.is_empty() && active.wallets.is_empty());
    }

    /// Many callbacks wait for one host, and each of its deliveries takes a fixed time.
    struct WaitingCallbacks {
        slots: Arc<DeliverySlots>,
        wallet: WalletId,
        due: Vec<Instant>,
        running: Vec<(Instant, DeliverySlot)>,
        claims_in_vain: usize,
        pause_max: Duration,
    }

    impl WaitingCallbacks {
        fn new(count: usize) -> Self {
            Self {
                slots: Arc::default(),
                wallet: WalletId::random(),
                due: vec![Instant::now(); count],
                running: Vec::new(),
                claims_in_vain: 0,
                pause_max: Duration::ZERO,
            }
        }

        async fn run(&mut self, within: Duration, delivery: Duration) {
            let until = Instant::now() + within;
            while Instant::now() < until {
                let now = Instant::now();
                self.running.retain(|(end, _)| *end > now);
                for due in std::mem::take(&mut self.due) {
                    if due > now {
                        self.due.push(due);
                        continue;
                    }
                    match self.slots.take("host".to_owned(), self.wallet, now) {
                        Ok(slot) => self.running.push((now + delivery, slot)),
                        Err(pause) => {
                            self.claims_in_vain += 1;
                            self.pause_max = self.pause_max.max(pause);
                            self.due.push(now + pause);
                        }
                    }
                }
                advance(Duration::from_millis(100)).await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn callbacks_to_a_host_that_never_answers_are_seldom_claimed_in_vain() {
        let mut waiting = WaitingCallbacks::new(2_000);
        let (minutes, timeout) = (Duration::from_secs(300), Duration::from_secs(10));
        waiting.run(minutes, timeout).await;
        let claims_each = waiting.claims_in_vain / waiting.due.len();
        assert!(claims_each < 20, "{claims_each} claims of each callback");
        assert!(waiting.pause_max <= BUSY_PAUSE_MAX);
        // The host recovers: 40 deliveries a second are possible.
        waiting
            .run(Duration::from_secs(90), Duration::from_millis(10))
            .await;
        assert_eq!(waiting.due.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_to_a_fast_host_waits_no_longer_than_before() {
        let mut waiting = WaitingCallbacks::new(100);
        waiting
            .run(Duration::from_secs(30), Duration::from_millis(10))
            .await;
        assert_eq!((waiting.due.len(), waiting.pause_max), (0, BUSY_PAUSE_MIN));
    }
}
