//! Checks conditions every few seconds, and begins and ends alerts.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::{DAY_MS, MINUTE_MS, UnixMs};
use store::{
    AlertId, AlertKind, AlertQuery, AlertRow, Dimension, NewAlert, RuleRow, Store, StoreError,
    UsageQuery,
};

use super::conditions::{self, Calls, CallsByChannel, Condition};
use super::decide::{Decision, decide};
use super::error_rate::CallCounts;
use super::signals::{DownChannels, stuck_closes};
use crate::clock;
use crate::engine::Engine;

/// The minimum lease of the checking node, and the minimum time for which the reported signals of a node are valid.
/// Both are longer than a check takes, and grow with the check interval.
const LEASE: Duration = Duration::from_secs(30);
/// A slow check is followed by a pause this many times as long, unless the lease would end first.
const PAUSE_PER_CHECK: u32 = 5;
/// The lease divided by this is the longest pause after a slow check, so that the lease lasts until the next check.
const PAUSES_PER_LEASE: u32 = 4;
/// The maximum number of alerts that begin at one check. Further alerts begin at the next check.
const BEGIN_MAX: usize = 500;
/// The length of the recent period, whose error rate is compared with that of the day before it.
const LATELY_MS: i64 = 15 * MINUTE_MS;
const USUAL_MS: i64 = DAY_MS;
/// The end of the baseline period is rounded to a multiple of this. Alerts that began together then share one count.
const ROUND_MS: i64 = 5 * MINUTE_MS;
/// How long the call counts of the baseline day (the 24 hours before the recent period) are reused.
const USUAL_FOR: Duration = Duration::from_secs(300);
/// Calls are counted only once in this many check intervals, because counting them reads more rows than anything else.
const COUNT_EVERY: u32 = 6;
/// The kinds of alerts that nodes report as signals.
const SIGNALS: &[AlertKind] = &[AlertKind::ChannelDown, AlertKind::StuckCloses];
/// How long ended alerts are kept.
const KEPT: Duration = Duration::from_secs(90 * 86_400);
/// How often we look for old alerts, and how many are deleted at once.
const FORGET_EVERY: Duration = Duration::from_secs(600);
const FORGET_MAX: u32 = 500;

impl Engine {
    /// Checks conditions for as long as the future is polled.
    pub async fn check_alerts(self: Arc<Self>) {
        let mut checker = AlertChecker::default();
        loop {
            let begun = Instant::now();
            if let Err(error) = checker.check(&self).await {
                tracing::warn!(%error, "alerts cannot be checked");
            }
            let check_every = self.settings.alerts.check_every;
            tokio::time::sleep(pause_after(begun.elapsed(), check_every)).await;
        }
    }
}

fn lease(check_every: Duration) -> Duration {
    LEASE.max(check_every * 3)
}

fn pause_after(took: Duration, check_every: Duration) -> Duration {
    let longest = lease(check_every) / PAUSES_PER_LEASE;
    check_every.max(longest.min(took.saturating_mul(PAUSE_PER_CHECK)))
}

/// The state that a node keeps between checks. Everything else is in the store.
#[derive(Debug, Default)]
struct AlertChecker {
    channels: DownChannels,
    has_signals: bool,
    /// The counted calls, the time at which the recent calls were counted, and the time at which the calls of the day
    /// before were counted.
    calls: Option<(Calls, Instant, Instant)>,
    /// The baselines of error-rate alerts: the calls of the day before each alert began, by the end of that day.
    before: BTreeMap<UnixMs, CallsByChannel>,
    forgot_at: Option<Instant>,
}

impl AlertChecker {
    async fn check(&mut self, engine: &Engine) -> Result<(), StoreError> {
        let (store, now) = (&engine.store, clock::steady());
        let lease = lease(engine.settings.alerts.check_every);
        self.report(engine, lease, now).await?;
        if !store.lease_alert_checks(lease).await? {
            return Ok(());
        }
        let rules = store.alert_rules().await?;
        let open = open_alerts(store).await?;
        let wrong = self.conditions(engine, &rules, &open, now).await;
        make(store, decide(open, wrong), now).await?;
        self.forget(store, now).await
    }

    /// Reports the signals of this node to the checking node, through the store. A node whose signals stay empty writes
    /// nothing.
    async fn report(
        &mut self,
        engine: &Engine,
        lasting: Duration,
        now: UnixMs,
    ) -> Result<(), StoreError> {
        let mut signals = self.channels.signals(&engine.channel_states());
        signals.extend(stuck_closes(engine.store.stats().stuck_closes));
        if signals.is_empty() && !self.has_signals {
            return Ok(());
        }
        let has_signals = !signals.is_empty();
        let set = engine.store.set_alert_signals(signals, lasting, now);
        set.await?;
        self.has_signals = has_signals;
        Ok(())
    }

    /// The conditions that hold now. A part of the store may be unavailable or slow while the rest works. Alerts whose
    /// condition cannot be read stay unchanged.
    async fn conditions(
        &mut self,
        engine: &Engine,
        rules: &[RuleRow],
        open: &[AlertRow],
        now: UnixMs,
    ) -> Vec<Condition> {
        let store = &engine.store;
        let signals = store.alert_signals(now).await;
        let signals = signals.map(|signals| conditions::of_signals(signals, rules));
        let count_every = engine.settings.alerts.check_every * COUNT_EVERY;
        let rates = self.error_rates(store, count_every, rules, open).await;
        let low = store.low_wallets(conditions::largest_below(rules)).await;
        let low = low.map(|wallets| conditions::of_wallets(&wallets, rules));
        let keys = store.keys_near_limits().await;
        let keys = keys.map(|keys| conditions::of_keys(&keys, rules));
        let mut wrong = Vec::new();
        for (read, kinds) in [
            (signals, SIGNALS),
            (rates, &[AlertKind::ErrorRate]),
            (low, &[AlertKind::LowBalance]),
            (keys, &[AlertKind::KeyLimit]),
        ] {
            wrong.extend(or_unchanged(read, kinds, open));
        }
        wrong
    }

    async fn error_rates(
        &mut self,
        store: &Store,
        count_every: Duration,
        rules: &[RuleRow],
        open: &[AlertRow],
    ) -> Result<Vec<Condition>, StoreError> {
        let known = self.known_rates(store, open).await?;
        let calls = self.count_calls(store, count_every).await?;
        Ok(conditions::of_calls(calls, &known, rules))
    }

    /// The open error-rate alerts, each with the calls of the day before it began.
    async fn known_rates(
        &mut self,
        store: &Store,
        open: &[AlertRow],
    ) -> Result<HashMap<String, CallCounts>, StoreError> {
        let mut before = BTreeMap::new();
        let mut known = HashMap::new();
        let rates = open.iter().filter(|it| it.kind == AlertKind::ErrorRate);
        for alert in rates {
            let end = day_before_ends(alert.at);
            let calls = match before.entry(end) {
                Entry::Occupied(calls) => calls.into_mut(),
                Entry::Vacant(place) => {
                    let from = end.minus_ms(USUAL_MS);
                    place.insert(if let Some(calls) = self.before.remove(&end) {
                        calls
                    } else {
                        calls_between(store, from, end, clock::now()).await?
                    })
                }
            };
            let counts = conditions::counts_of(calls, alert.subject.as_deref());
            known.insert(alert.condition.clone(), counts);
        }
        self.before = before;
        Ok(known)
    }

    async fn count_calls(&mut self, store: &Store, every: Duration) -> Result<&Calls, StoreError> {
        let mut known = self.calls.take();
        let is_due = known
            .as_ref()
            .is_none_or(|(_, counted_at, _)| counted_at.elapsed() >= every);
        if is_due {
            let now = clock::now();
            let lately = now.minus_ms(LATELY_MS);
            let recent = calls_between(store, lately, now.plus_ms(1), now).await?;
            let usual = known
                .take()
                .filter(|(.., usual_at)| usual_at.elapsed() < USUAL_FOR);
            let (usual, usual_at) = if let Some((calls, _, usual_at)) = usual {
                (calls.usual, usual_at)
            } else {
                let from = lately.minus_ms(USUAL_MS);
                let usual = calls_between(store, from, lately, now).await?;
                (usual, Instant::now())
            };
            known = Some((Calls { recent, usual }, Instant::now(), usual_at));
        }
        self.calls = known;
        let calls = self.calls.as_ref().map(|(calls, ..)| calls);
        calls.ok_or(StoreError::Unavailable)
    }

    async fn forget(&mut self, store: &Store, now: UnixMs) -> Result<(), StoreError> {
        let is_due = self.forgot_at.is_none_or(|at| at.elapsed() >= FORGET_EVERY);
        if is_due && store.forget_alerts(KEPT, FORGET_MAX, now).await? < u64::from(FORGET_MAX) {
            self.forgot_at = Some(Instant::now());
        }
        Ok(())
    }
}

/// The conditions if they could be read, otherwise the open alerts of these kinds.
fn or_unchanged(
    read: Result<Vec<Condition>, StoreError>,
    kinds: &[AlertKind],
    open: &[AlertRow],
) -> Vec<Condition> {
    read.unwrap_or_else(|error| {
        tracing::warn!(%error, ?kinds, "the data for alerts cannot be read");
        let unchanged = kinds.iter().map(|kind| conditions::unchanged(open, *kind));
        unchanged.flatten().collect()
    })
}

/// The end of the baseline day of an error rate that began at `began_at`. Alerts that begin together get the same end,
/// so that their calls are counted once.
fn day_before_ends(began_at: UnixMs) -> UnixMs {
    let lately = began_at.minus_ms(LATELY_MS).get();
    UnixMs::new(lately - lately.rem_euclid(ROUND_MS))
}

async fn open_alerts(store: &Store) -> Result<Vec<AlertRow>, StoreError> {
    let mut open: Vec<AlertRow> = Vec::new();
    loop {
        let page = store.alerts(AlertQuery {
            only_open: true,
            before: open.last().map(|alert| alert.cursor),
            ..AlertQuery::default()
        });
        let page = page.await?;
        if page.is_empty() {
            return Ok(open);
        }
        open.extend(page);
    }
}

async fn calls_between(
    store: &Store,
    from: UnixMs,
    to: UnixMs,
    now: UnixMs,
) -> Result<CallsByChannel, StoreError> {
    let rows = store.usage(UsageQuery {
        by: vec![Dimension::Channel],
        ..UsageQuery::between(from, to, now)
    });
    let counts = rows.await?.into_iter().map(|row| {
        let counts = CallCounts {
            requests: row.totals.requests,
            errors: row.totals.errors,
        };
        (row.series.channel.to_string(), counts)
    });
    Ok(counts.collect())
}

/// Begins and ends alerts, and logs each. Another node may already have done the same.
async fn make(store: &Store, decision: Decision, now: UnixMs) -> Result<(), StoreError> {
    for alert in decision.end {
        if store.end_alert(alert.id, now).await? {
            tracing::info!(alert = %alert.id, kind = %alert.kind, "an alert has ended: {}", alert.message);
        }
    }
    for condition in decision.begin.into_iter().take(BEGIN_MAX) {
        let new = NewAlert {
            id: AlertId::random(),
            kind: condition.kind,
            condition: condition.name,
            subject: condition.subject,
            wallet: condition.wallet,
            message: condition.message,
            rules: condition.rules,
        };
        let (id, kind, message) = (new.id, new.kind, new.message.clone());
        if store.begin_alert(new, now).await? {
            tracing::warn!(alert = %id, %kind, "alert: {message}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use store::{AlertCursor, DeliveryState};

    use super::*;

    #[test]
    fn the_pause_after_a_slow_look_ends_before_the_lease() {
        let seconds = Duration::from_secs;
        for (took, check_every, pause) in [
            (Duration::ZERO, 5, seconds(5)),
            (Duration::from_millis(1_200), 5, seconds(6)),
            (seconds(20), 5, Duration::from_millis(7_500)),
            (seconds(20), 60, seconds(60)),
        ] {
            let check_every = seconds(check_every);
            assert_eq!(pause_after(took, check_every), pause, "{took:?}");
            assert!(pause * 3 <= lease(check_every));
        }
    }

    #[test]
    fn what_cannot_be_read_keeps_its_alerts_and_no_others() {
        let alert = |kind: AlertKind| AlertRow {
            cursor: AlertCursor(1),
            id: AlertId::random(),
            kind,
            condition: kind.to_string(),
            subject: None,
            wallet: None,
            message: String::new(),
            at: UnixMs::new(0),
            ended_at: None,
            delivery: DeliveryState::None,
        };
        let open = AlertKind::ALL.map(alert);
        let kept = or_unchanged(Err(StoreError::Unavailable), SIGNALS, &open);
        let kept: Vec<_> = kept.iter().map(|it| it.kind).collect();
        assert_eq!(kept, SIGNALS);
        assert_eq!(or_unchanged(Ok(Vec::new()), SIGNALS, &open), []);
    }
}
