//! The node's metrics in the Prometheus text format.
//!
//! The configuration bounds the labels: endpoints, model ids and channel names, never anything that a caller
//! chose.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use store::{Settled, Stats};

use super::media_counts::MediaCounts;
use crate::metrics::request_tally::{RequestTallies, Tally};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByModel {
    model: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenClass {
    model: Arc<str>,
    class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolOfModel {
    model: Arc<str>,
    tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByChannel {
    channel: String,
    state: &'static str,
}

/// The node's counters. A scrape never blocks them for long.
pub struct Metrics {
    registry: Registry,
    tallies: Arc<RequestTallies>,
    tokens: Family<TokenClass, Counter>,
    credits: Family<ByModel, Counter>,
    unpriced_tool_calls: Family<ToolOfModel, Counter>,
    /// Answers that ended cleanly without a usage report.
    pub usage_missing: Counter,
    /// Usage reports that were negative, not numbers, or implausible.
    pub usage_malformed: Counter,
    /// Attempts on a further route after the first one failed.
    pub failovers: Counter,
    /// Panics that were contained to their request.
    pub panics: Counter,
    /// Calls whose client left before the answer was complete.
    pub clients_gone: Counter,
    pub(crate) media: MediaCounts,
    store: StoreGauges,
    channels: Family<ByChannel, Gauge>,
    uptime: Gauge<u64, AtomicU64>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Values of other parts at the moment of a scrape.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScrapeValues {
    pub(crate) stats: Stats,
    /// What the ledger has committed, by model.
    pub(crate) settled: Vec<Settled>,
    pub(crate) uptime: Duration,
    /// Name and breaker state of each channel.
    pub(crate) channels: Vec<(String, &'static str)>,
}

impl Metrics {
    /// All metrics, at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("tollgate");
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let usage_missing = counter("usage_missing", "Answers that ended cleanly without usage");
        let usage_malformed = counter("usage_malformed", "Usage reports that cannot be read");
        let failovers = counter("failovers", "Tries on a further route");
        let panics = counter("panics", "Panics contained to their request");
        let clients_gone = counter(
            "clients_gone",
            "Callers that left before their answer ended",
        );
        let media = MediaCounts::register(&mut registry);
        let store = StoreGauges::register(&mut registry);
        let tallies = Arc::new(RequestTallies::default());
        registry.register_collector(Box::new(Arc::clone(&tallies)));
        let tokens = Family::default();
        registry.register("tokens", "Tokens settled, by class", tokens.clone());
        let credits = Family::default();
        registry.register(
            "charged_micro_credits",
            "Micro-credits settled",
            credits.clone(),
        );
        let unpriced_tool_calls = Family::default();
        registry.register(
            "unpriced_tool_calls",
            "Calls of built-in tools that have no price",
            unpriced_tool_calls.clone(),
        );
        let channels = Family::default();
        registry.register(
            "channel_state",
            "1 for the state a channel is in",
            channels.clone(),
        );
        let uptime = Gauge::default();
        registry.register("uptime_seconds", "Seconds since the start", uptime.clone());
        Self {
            registry,
            tallies,
            tokens,
            credits,
            unpriced_tool_calls,
            usage_missing,
            usage_malformed,
            failovers,
            panics,
            clients_gone,
            media,
            store,
            channels,
            uptime,
        }
    }

    /// A new tally of requests. Each thread has its own.
    pub fn tally(&self) -> Arc<Tally> {
        self.tallies.tally()
    }

    /// A call used a built-in tool that has no price.
    pub(crate) fn unpriced_tool(&self, model: &Arc<str>, tool: &str, calls: u64) {
        let labels = ToolOfModel {
            model: Arc::clone(model),
            tool: tool.to_owned(),
        };
        self.unpriced_tool_calls
            .get_or_create(&labels)
            .inc_by(calls);
    }

    /// Shows what the ledger has committed. Charges that were rolled back do not count.
    fn set_settled(&self, settled: &Settled) {
        let Settled {
            model,
            charge_micro,
            tokens,
            ..
        } = settled;
        for (class, count) in [
            ("input", tokens.input),
            ("cached_input", tokens.cached_input),
            ("cache_write", tokens.cache_write),
            ("cache_write_1h", tokens.cache_write_1h),
            ("output", tokens.output),
        ] {
            let model = Arc::clone(model);
            let counter = self.tokens.get_or_create(&TokenClass { model, class });
            counter.inner().store(count, Ordering::Relaxed);
        }
        let model = Arc::clone(model);
        let counter = self.credits.get_or_create(&ByModel { model });
        counter.inner().store(*charge_micro, Ordering::Relaxed);
    }

    /// The text that a scraper reads.
    pub(crate) fn render(&self, values: &ScrapeValues) -> String {
        self.store.set(&values.stats);
        for settled in &values.settled {
            self.set_settled(settled);
        }
        self.uptime.set(values.uptime.as_secs());
        self.channels.clear();
        for (channel, state) in &values.channels {
            self.channels
                .get_or_create(&ByChannel {
                    channel: channel.clone(),
                    state,
                })
                .set(1);
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// One gauge for each counter of the store, set at each scrape.
#[derive(Debug)]
struct StoreGauges([StoreGauge; 18]);

/// A gauge and the counter that it shows.
type StoreGauge = (Gauge, fn(&Stats) -> u64);

impl StoreGauges {
    fn register(registry: &mut Registry) -> Self {
        let mut gauge = |name: &str, help: &str, read: fn(&Stats) -> u64| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            (gauge, read)
        };
        Self([
            gauge(
                "ledger_queue_depth",
                "Commands that wait for the ledger writer",
                |it| it.queue_depth,
            ),
            gauge("holds_open", "Open holds of this node", |it| it.open_holds),
            gauge("holds_abandoned", "Holds closed as abandoned", |it| {
                it.abandoned
            }),
            gauge("ledger_batches", "Ledger transactions committed", |it| {
                it.batches
            }),
            gauge("ledger_commands", "Commands in them", |it| it.commands),
            gauge(
                "ledger_commits_failed",
                "Ledger transactions that failed",
                |it| it.commits_failed,
            ),
            gauge("closes_late", "Closes that found their hold closed", |it| {
                it.late_closes
            }),
            gauge("closes_stuck", "Closes that the database refuses", |it| {
                it.stuck_closes
            }),
            gauge(
                "closes_retried",
                "Closes of failed transactions that wait to be booked again",
                |it| it.retried_closes,
            ),
            gauge(
                "holds_lost",
                "Open calls whose hold was lost with a failed transaction",
                |it| it.lost_holds,
            ),
            gauge("settled_above_hold", "Settlements above their hold", |it| {
                it.above_hold
            }),
            gauge(
                "settled_zero_charge",
                "Settlements of real usage at no charge",
                |it| it.zero_charges,
            ),
            gauge(
                "charges_unbookable",
                "Charges beyond the range of money, noted in an entry and not booked",
                |it| it.unbookable,
            ),
            gauge(
                "disk_free_bytes",
                "Free bytes where the database lies",
                |it| it.disk_free_bytes,
            ),
            gauge("journal_queue_depth", "Journal rows that wait", |it| {
                it.journal_queue
            }),
            gauge("journal_written", "Journal rows written", |it| {
                it.journal_written
            }),
            gauge("journal_dropped", "Journal rows dropped", |it| {
                it.journal_dropped
            }),
            gauge(
                "journal_bodies_dropped",
                "Journal rows written without their bodies, for which there was no room",
                |it| it.journal_bodies_dropped,
            ),
        ])
    }

    fn set(&self, stats: &Stats) {
        for (gauge, read) in &self.0 {
            gauge.set(i64::try_from(read(stats)).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_shows_what_was_counted() {
        let metrics = Metrics::new();
        let tally = metrics.tally();
        tally.arrived();
        tally.answered("/v1/balance", 200, Duration::from_millis(3));
        metrics.usage_missing.inc();
        let text = metrics.render(&ScrapeValues {
            channels: vec![("main".to_owned(), "closed")],
            ..ScrapeValues::default()
        });
        for line in [
            "tollgate_in_flight 1",
            "tollgate_requests_total{endpoint=\"/v1/balance\",status=\"200\"} 1",
            "tollgate_usage_missing_total 1",
            "tollgate_channel_state{channel=\"main\",state=\"closed\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
