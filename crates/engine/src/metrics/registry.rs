//! The node's metrics in the Prometheus text format.
//!
//! Callers cannot create labels. The values of labels are fixed words, names and ids from the configuration, and the
//! ids of a limited number of wallets.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use store::{Backlog, JournalRow, Settled, Stats};

use super::call_tally::CallTallies;
use super::exemplars;
use super::media_counts::MediaCounts;
use super::telemetry_counts::TelemetryCounts;
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

/// The prefix of every metric's name.
const PREFIX: &str = "tollgate";

/// The node's counters. A scrape never blocks them for long.
pub struct Metrics {
    registry: Registry,
    tallies: Arc<RequestTallies>,
    calls: Arc<CallTallies>,
    tokens: Family<TokenClass, Counter>,
    credits: Family<ByModel, Counter>,
    unpriced_tool_calls: Family<ToolOfModel, Counter>,
    /// Calls that were charged without a usable usage report, including streams that broke.
    pub usage_missing: Counter,
    /// Usage reports that were negative, not numbers, or implausible.
    pub usage_malformed: Counter,
    /// Attempts on further routes after the first one failed.
    pub failovers: Counter,
    /// Panics that ended only their own request.
    pub panics: Counter,
    /// Calls whose client left before the answer was complete.
    pub clients_gone: Counter,
    pub(crate) media: MediaCounts,
    pub(crate) telemetry: TelemetryCounts,
    store: StoreValues,
    channels: Family<ByChannel, Gauge>,
    uptime: Gauge<u64, AtomicU64>,
    callbacks_waiting: Gauge<u64, AtomicU64>,
    oldest_hold: Gauge<u64, AtomicU64>,
    /// Locked while the gauges are set and the text is written, so that concurrent scrapes do not mix their values.
    rendering: Mutex<()>,
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

/// Values that other parts of the engine provide at each scrape.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScrapeValues {
    pub(crate) stats: Stats,
    pub(crate) backlog: Backlog,
    /// The totals that the ledger has committed, by model.
    pub(crate) settled: Vec<Settled>,
    pub(crate) uptime: Duration,
    /// The name and the breaker state of each channel.
    pub(crate) channels: Vec<(String, &'static str)>,
}

impl Metrics {
    /// Creates all metrics, at zero.
    pub fn new() -> Self {
        Self::with_wallets(0)
    }

    /// Like `new`, with series for this many wallets.
    pub(crate) fn with_wallets(wallets_max: usize) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let usage_missing = counter(
            "usage_missing",
            "Calls that were billed by our own count, because usage was missing or impossible",
        );
        let usage_malformed = counter(
            "usage_malformed",
            "Usage reports that cannot be read or are impossible",
        );
        let failovers = counter("failovers", "Attempts on a further route");
        let panics = counter("panics", "Panics contained to their request");
        let clients_gone = counter(
            "clients_gone",
            "Callers that left before their answer ended",
        );
        let media = MediaCounts::register(&mut registry);
        let telemetry = TelemetryCounts::register(&mut registry);
        let store = StoreValues::register(&mut registry);
        let tallies = Arc::new(RequestTallies::default());
        registry.register_collector(Box::new(Arc::clone(&tallies)));
        let calls = Arc::new(CallTallies::with_wallets(wallets_max));
        registry.register_collector(Box::new(Arc::clone(&calls)));
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
        let callbacks_waiting = Gauge::default();
        registry.register(
            "callbacks_waiting",
            "Callbacks of all nodes that are neither delivered nor given up",
            callbacks_waiting.clone(),
        );
        let oldest_hold = Gauge::default();
        registry.register(
            "hold_oldest_seconds",
            "Age of the oldest open hold of all nodes, in seconds; 0 if there is none",
            oldest_hold.clone(),
        );
        Self {
            registry,
            tallies,
            calls,
            tokens,
            credits,
            unpriced_tool_calls,
            usage_missing,
            usage_malformed,
            failovers,
            panics,
            clients_gone,
            media,
            telemetry,
            store,
            channels,
            uptime,
            callbacks_waiting,
            oldest_hold,
            rendering: Mutex::new(()),
        }
    }

    /// Creates a tally of requests. Each thread has its own.
    pub fn tally(&self) -> Arc<Tally> {
        self.tallies.tally()
    }

    /// Counts a call that has ended. `is_known` is true if its model exists.
    pub(crate) fn call_ended(&self, row: &JournalRow, is_known: bool) {
        self.calls.count(row, is_known);
    }

    pub(crate) fn charged_late(&self, late: &JournalRow) {
        self.calls.add_late_charge(late);
    }

    /// Counts calls of a built-in tool that has no price.
    pub(crate) fn unpriced_tool(&self, model: &Arc<str>, tool: &str, calls: u64) {
        let labels = ToolOfModel {
            model: Arc::clone(model),
            tool: tool.to_owned(),
        };
        self.unpriced_tool_calls
            .get_or_create(&labels)
            .inc_by(calls);
    }

    /// Sets the totals that the ledger has committed. Charges that were rolled back do not count.
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
        let _alone = self.rendering.lock();
        self.store.set(&values.stats);
        for settled in &values.settled {
            self.set_settled(settled);
        }
        self.uptime.set(values.uptime.as_secs());
        self.callbacks_waiting.set(values.backlog.callbacks);
        let oldest_hold = values.backlog.oldest_hold.unwrap_or_default();
        self.oldest_hold.set(oldest_hold.as_secs());
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

    /// The text that a scraper reads, with an exemplar in each histogram bucket that has one.
    pub(crate) fn render_with_exemplars(&self, values: &ScrapeValues) -> String {
        // The exemplars are read before the counts, so that the counts include their requests.
        let exemplars = self.tallies.exemplars(PREFIX);
        let text = self.render(values);
        if exemplars.is_empty() {
            return text;
        }
        exemplars::append(&text, &exemplars)
    }
}

/// Values of the store, set at each scrape. Values that only grow are counters.
#[derive(Debug)]
struct StoreValues {
    gauges: Vec<(Gauge<u64, AtomicU64>, ReadStat)>,
    counters: Vec<(Counter, ReadStat)>,
}

type ReadStat = fn(&Stats) -> u64;

impl StoreValues {
    fn register(registry: &mut Registry) -> Self {
        let gauges = StoreValue::GAUGES.into_iter().map(|it| {
            let gauge = Gauge::default();
            registry.register(it.name, it.help, gauge.clone());
            (gauge, it.read)
        });
        let gauges = gauges.collect();
        let counters = StoreValue::COUNTERS.into_iter().map(|it| {
            let counter = Counter::default();
            registry.register(it.name, it.help, counter.clone());
            (counter, it.read)
        });
        Self {
            gauges,
            counters: counters.collect(),
        }
    }

    fn set(&self, stats: &Stats) {
        for (gauge, read) in &self.gauges {
            gauge.set(read(stats));
        }
        for (counter, read) in &self.counters {
            counter.inner().store(read(stats), Ordering::Relaxed);
        }
    }
}

/// The declaration of one of the store's values.
struct StoreValue {
    name: &'static str,
    help: &'static str,
    read: ReadStat,
}

impl StoreValue {
    const fn new(name: &'static str, help: &'static str, read: ReadStat) -> Self {
        Self { name, help, read }
    }

    const GAUGES: [Self; 7] = [
        Self::new(
            "ledger_queue_depth",
            "Commands that wait for the ledger writer",
            |it| it.queue_depth,
        ),
        Self::new("holds_open", "Open holds of this node", |it| it.open_holds),
        Self::new(
            "holds_lost",
            "Open calls whose hold was lost with a failed transaction",
            |it| it.lost_holds,
        ),
        Self::new(
            "closes_stuck",
            "Finished calls that the database refuses to book",
            |it| it.stuck_closes,
        ),
        Self::new(
            "closes_retried",
            "Finished calls of failed transactions that wait to be booked again",
            |it| it.retried_closes,
        ),
        Self::new(
            "disk_free_bytes",
            "Free bytes where the SQLite database lies; 0 with PostgreSQL",
            |it| it.disk_free_bytes,
        ),
        Self::new("journal_queue_depth", "Journal rows that wait", |it| {
            it.journal_queue
        }),
    ];

    const COUNTERS: [Self; 11] = [
        Self::new("holds_abandoned", "Holds closed as abandoned", |it| {
            it.abandoned
        }),
        Self::new("ledger_batches", "Ledger transactions committed", |it| {
            it.batches
        }),
        Self::new(
            "ledger_commands",
            "Commands in committed ledger transactions",
            |it| it.commands,
        ),
        Self::new(
            "ledger_commits_failed",
            "Ledger transactions that failed",
            |it| it.commits_failed,
        ),
        Self::new("closes_late", "Closes that found their hold closed", |it| {
            it.late_closes
        }),
        Self::new("settled_above_hold", "Settlements above their hold", |it| {
            it.above_hold
        }),
        Self::new(
            "settled_zero_charge",
            "Settlements of real usage at no charge",
            |it| it.zero_charges,
        ),
        Self::new(
            "charges_unbookable",
            "Charges beyond the range of money, noted in an entry and not booked",
            |it| it.unbookable,
        ),
        Self::new("journal_written", "Journal rows written", |it| {
            it.journal_written
        }),
        Self::new("journal_dropped", "Journal rows dropped", |it| {
            it.journal_dropped
        }),
        Self::new(
            "journal_bodies_dropped",
            "Journal rows written without their bodies, for which there was no room",
            |it| it.journal_bodies_dropped,
        ),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_shows_what_was_counted() {
        let metrics = Metrics::new();
        let tally = metrics.tally();
        tally.arrived();
        tally.answered("/v1/balance", 200, Duration::from_millis(3), None);
        metrics.usage_missing.inc();
        let text = metrics.render(&ScrapeValues {
            backlog: Backlog {
                callbacks: 3,
                oldest_hold: Some(Duration::from_millis(70_900)),
            },
            channels: vec![("main".to_owned(), "closed")],
            ..ScrapeValues::default()
        });
        for line in [
            "tollgate_in_flight 1",
            "tollgate_requests_total{endpoint=\"/v1/balance\",status=\"200\"} 1",
            "tollgate_usage_missing_total 1",
            "tollgate_callbacks_waiting 3",
            "tollgate_hold_oldest_seconds 70",
            "tollgate_channel_state{channel=\"main\",state=\"closed\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }

    /// A text with every metric, as a node shows it after some calls.
    fn all_metrics() -> String {
        let metrics = Metrics::with_wallets(1);
        let tally = metrics.tally();
        tally.arrived();
        tally.answered("/v1/balance", 200, Duration::from_millis(3), None);
        metrics.call_ended(&JournalRow::default(), true);
        let model: Arc<str> = Arc::from("maker/chat");
        metrics.unpriced_tool(&model, "web_search", 1);
        metrics.media.copied("kept");
        metrics.render(&ScrapeValues {
            channels: vec![("main".to_owned(), "closed")],
            settled: vec![Settled {
                model,
                ..Settled::default()
            }],
            ..ScrapeValues::default()
        })
    }

    /// The labels of a line, except `le`, which every histogram has.
    fn labels(line: &str) -> String {
        let inside = line.split_once('{').and_then(|(_, it)| it.split_once('}'));
        let pairs = inside.map_or("", |(it, _)| it).split("\",");
        let names = pairs.filter_map(|it| it.split_once('=').map(|(name, _)| name));
        let names: Vec<_> = names
            .filter(|name| *name != "le")
            .map(|name| format!("`{name}`"))
            .collect();
        names.join(", ")
    }

    const PAGE_HEAD: &str = "# Metrics\n\n\
        What `GET /metrics` of the admin listener shows, in the text format of Prometheus. A test writes this page from the\n\
        program: `TOLLGATE_WRITE_METRICS=1 cargo test -p tollgate-engine --lib metrics`.\n\n\
        The configuration bounds every label: `endpoint` is one of our paths, `model` and `channel` are names of the\n\
        configuration. Nothing that a caller chose becomes a label. Wallets have series of their own if `telemetry.wallet_series`\n\
        says so. Counters begin at zero with each start of a node.\n\n\
        A scraper that asks for OpenMetrics gets exemplars in the histograms while calls are traced ([telemetry](telemetry.md#exemplars)).\n\n\
        `deploy/prometheus/alerts.yml` has alert rules for them, and `deploy/grafana/tollgate.json` a dashboard.\n\n\
        | metric | type | labels | meaning |\n|---|---|---|---|\n";

    #[test]
    fn the_page_of_metrics_is_current() {
        let text = all_metrics();
        let mut rows = Vec::new();
        for block in text.split("# HELP ").skip(1) {
            let (name, rest) = block.split_once(' ').unwrap();
            let (help, rest) = rest.split_once('\n').unwrap();
            let kind = rest.split(['\n', ' ']).nth(3).unwrap();
            let sample = rest.lines().find(|it| !it.starts_with('#')).unwrap();
            let shown = if kind == "counter" { "_total" } else { "" };
            rows.push(format!(
                "| `{name}{shown}` | {kind} | {} | {help} |\n",
                labels(sample)
            ));
        }
        rows.sort();
        let page = format!("{PAGE_HEAD}{}", rows.concat());
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        if std::env::var_os("TOLLGATE_WRITE_METRICS").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == page,
            "docs/metrics.md is out of date; TOLLGATE_WRITE_METRICS=1 writes it"
        );
    }
}
