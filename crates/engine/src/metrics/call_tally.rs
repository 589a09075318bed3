//! Counts calls by endpoint, model, channel and outcome, and by wallet if the operator enables that.
//!
//! A call is counted when it is journaled. The counts are spread over shards, and a scrape adds them up.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use store::{JournalRow, WalletId};

/// The number of separately locked shards, so that threads rarely wait for each other.
const SHARDS: usize = 16;
/// The maximum number of series per model in one shard. The configuration usually bounds this number. If a node has
/// loaded many configurations, calls that would need further series are counted without a channel.
const SERIES_MAX: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Served,
    /// The request was invalid, not permitted or not paid for.
    Refused,
    /// The gateway or the upstream failed.
    Failed,
    ClientGone,
}

impl Outcome {
    fn of(row: &JournalRow) -> Self {
        match (row.status, &row.code) {
            (499, _) => Self::ClientGone,
            (..400, None) => Self::Served,
            // A code means that the call failed, even if the status is that of a success.
            (500.., _) | (..400, Some(_)) => Self::Failed,
            _ => Self::Refused,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::ClientGone => "client_gone",
        }
    }
}

/// The calls of one model that have the same labels.
#[derive(Debug)]
struct Series {
    endpoint: Cow<'static, str>,
    channel: Option<Arc<str>>,
    outcome: Outcome,
    calls: u64,
}

/// Series by model. The name is empty if the request names no model or an unknown one.
type Shard = HashMap<Arc<str>, Vec<Series>>;

#[derive(Debug, Default)]
pub(crate) struct CallTallies {
    shards: [Padded; SHARDS],
    wallets: WalletTallies,
}

/// A shard on its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(Mutex<Shard>);

impl CallTallies {
    /// Counts this many wallets separately, and all others together. The default is none.
    pub(crate) fn with_wallets(wallets_max: usize) -> Self {
        Self {
            wallets: WalletTallies {
                wallets_max,
                ..WalletTallies::default()
            },
            ..Self::default()
        }
    }

    /// Counts a call that has ended. `is_known` is true if its model exists: a name that a caller has invented must not
    /// become a label.
    pub(crate) fn count(&self, row: &JournalRow, is_known: bool) {
        let model = if is_known { &*row.model } else { "" };
        let outcome = Outcome::of(row);
        let mut shard = self.shard().0.lock();
        if let Some(series) = shard.get_mut(model) {
            count_among(series, row, outcome);
        } else {
            let series = shard.entry(model.into()).or_default();
            count_among(series, row, outcome);
        }
        drop(shard);
        self.wallets.count(row);
    }

    /// Adds the charge of a call that was counted before its charge was known.
    pub(crate) fn add_late_charge(&self, late: &JournalRow) {
        self.wallets.count(late);
    }

    fn shard(&self) -> &Padded {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static PLACE: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        let [first, ..] = &self.shards;
        self.shards.get(PLACE.get()).unwrap_or(first)
    }
}

fn count_among(series: &mut Vec<Series>, row: &JournalRow, outcome: Outcome) {
    let is_full = series.len() >= SERIES_MAX;
    let same = |it: &Series, channel: Option<&str>| {
        it.outcome == outcome && it.channel.as_deref() == channel && it.endpoint == row.endpoint
    };
    let channel = row.channel.as_deref();
    let mut place = series.iter().position(|it| same(it, channel));
    let mut channel = row.channel.as_ref();
    if place.is_none() && is_full {
        channel = None;
        place = series.iter().position(|it| same(it, None));
    }
    if let Some(series) = place.and_then(|place| series.get_mut(place)) {
        series.calls += 1;
        return;
    }
    series.push(Series {
        endpoint: row.endpoint.clone(),
        channel: channel.cloned(),
        outcome,
        calls: 1,
    });
}

#[derive(Debug, Default)]
struct WalletTallies {
    wallets_max: usize,
    wallets: RwLock<HashMap<WalletId, Arc<WalletCounts>>>,
    others: WalletCounts,
}

#[derive(Debug, Default)]
struct WalletCounts {
    calls: AtomicU64,
    charged_micro: AtomicU64,
}

impl WalletCounts {
    fn count(&self, row: &JournalRow) {
        let charge = u64::try_from(row.charge.get()).unwrap_or(0);
        let calls = u64::from(!row.is_late_charge);
        self.calls.fetch_add(calls, Ordering::Relaxed);
        self.charged_micro.fetch_add(charge, Ordering::Relaxed);
    }
}

impl WalletTallies {
    fn count(&self, row: &JournalRow) {
        let (Some(wallet), 1..) = (row.wallet, self.wallets_max) else {
            return;
        };
        let wallets = self.wallets.read();
        if let Some(counts) = wallets.get(&wallet) {
            return counts.count(row);
        }
        // Once every entry is taken, no call needs the write lock.
        if wallets.len() >= self.wallets_max {
            return self.others.count(row);
        }
        drop(wallets);
        let mut wallets = self.wallets.write();
        if wallets.len() >= self.wallets_max && !wallets.contains_key(&wallet) {
            drop(wallets);
            return self.others.count(row);
        }
        wallets.entry(wallet).or_default().count(row);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct CallLabels {
    endpoint: String,
    model: String,
    channel: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWallet {
    wallet: String,
}

impl Collector for CallTallies {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let mut calls = BTreeMap::<CallLabels, u64>::new();
        for shard in &self.shards {
            for (model, series) in shard.0.lock().iter() {
                for it in series {
                    let labels = CallLabels {
                        endpoint: it.endpoint.to_string(),
                        model: model.to_string(),
                        channel: it.channel.as_deref().unwrap_or_default().to_owned(),
                        outcome: it.outcome.as_str(),
                    };
                    *calls.entry(labels).or_default() += it.calls;
                }
            }
        }
        let about = "Calls by what they asked for, the channel that served or failed them, and how they ended.";
        let mut to_calls = to.encode_descriptor("calls", about, None, MetricType::Counter)?;
        for (labels, count) in &calls {
            ConstCounter::new(*count).encode(to_calls.encode_family(labels)?)?;
        }
        self.wallets.encode(&mut to)
    }
}

type ReadCount = fn(&WalletCounts) -> &AtomicU64;

impl WalletTallies {
    fn encode(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.wallets_max == 0 {
            return Ok(());
        }
        let wallets = self.wallets.read();
        let named = wallets
            .iter()
            .map(|(id, counts)| (id.to_string(), &**counts));
        let all: Vec<(String, &WalletCounts)> =
            named.chain([("other".to_owned(), &self.others)]).collect();
        let metrics: [(&str, &str, ReadCount); 2] = [
            ("wallet_calls", "Calls by wallet.", |it| &it.calls),
            (
                "wallet_charged_micro_credits",
                "Micro-credits of calls and of tasks that this node ended, by wallet.",
                |it| &it.charged_micro,
            ),
        ];
        for (name, about, read) in metrics {
            let mut to = to.encode_descriptor(name, about, None, MetricType::Counter)?;
            for (wallet, counts) in &all {
                let labels = ByWallet {
                    wallet: wallet.clone(),
                };
                let count = read(counts).load(Ordering::Relaxed);
                ConstCounter::new(count).encode(to.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ledger::Micro;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    fn row(
        model: &str,
        channel: Option<&str>,
        status: u16,
        code: Option<&'static str>,
    ) -> JournalRow {
        JournalRow {
            endpoint: "/v1/chat/completions".into(),
            model: model.into(),
            channel: channel.map(Into::into),
            status,
            code: code.map(Into::into),
            ..JournalRow::default()
        }
    }

    fn text(tallies: &Arc<CallTallies>) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(tallies)));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn calls_are_counted_by_how_they_ended() {
        let tallies = Arc::new(CallTallies::default());
        for (row, is_known) in [
            (row("maker/chat", Some("main"), 200, None), true),
            (row("maker/chat", Some("main"), 200, None), true),
            (
                row("maker/chat", Some("main"), 200, Some("upstream_error")),
                true,
            ),
            (
                row("maker/chat", Some("other"), 502, Some("upstream_error")),
                true,
            ),
            (
                row("maker/chat", None, 402, Some("insufficient_quota")),
                true,
            ),
            (
                row("maker/chat", Some("main"), 499, Some("client_gone")),
                true,
            ),
            (
                row(
                    "invented \"by\" a caller",
                    None,
                    404,
                    Some("model_not_found"),
                ),
                false,
            ),
        ] {
            tallies.count(&row, is_known);
        }
        // Other threads count in other shards, and the sums include them.
        std::thread::scope(|scope| {
            scope.spawn(|| tallies.count(&row("maker/chat", Some("main"), 200, None), true));
        });
        let text = text(&tallies);
        for (model, channel, outcome, count) in [
            ("maker/chat", "main", "served", 3),
            ("maker/chat", "main", "failed", 1),
            ("maker/chat", "other", "failed", 1),
            ("maker/chat", "", "refused", 1),
            ("maker/chat", "main", "client_gone", 1),
            ("", "", "refused", 1),
        ] {
            let line = format!(
                "calls_total{{endpoint=\"/v1/chat/completions\",model=\"{model}\",channel=\"{channel}\",\
                 outcome=\"{outcome}\"}} {count}"
            );
            assert!(
                text.lines().any(|it| it == line),
                "{line} is missing in\n{text}"
            );
        }
        assert!(!text.contains("invented"), "{text}");
        assert!(!text.contains("wallet"), "{text}");
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let tallies = Arc::new(CallTallies::default());
        for n in 0..2 * SERIES_MAX {
            let channel = format!("channel-{n}");
            tallies.count(&row("maker/chat", Some(&channel), 200, None), true);
        }
        let text = text(&tallies);
        let series = text.lines().filter(|it| it.starts_with("calls_total"));
        assert_eq!(series.count(), SERIES_MAX + 1);
        assert!(
            text.contains(&format!("channel=\"\",outcome=\"served\"}} {SERIES_MAX}\n")),
            "{text}"
        );
    }

    #[test]
    fn only_so_many_wallets_have_series_of_their_own() {
        let tallies = Arc::new(CallTallies::with_wallets(2));
        let wallets: Vec<_> = (0..5).map(|n| WalletId::derived(&format!("{n}"))).collect();
        for _ in 0..2 {
            for wallet in &wallets {
                let row = JournalRow {
                    wallet: Some(*wallet),
                    charge: Micro::new(7),
                    ..row("maker/chat", Some("main"), 200, None)
                };
                tallies.count(&row, true);
            }
        }
        // The charge of a task comes after its call.
        tallies.add_late_charge(&JournalRow {
            is_late_charge: true,
            wallet: Some(wallets[0]),
            charge: Micro::new(100),
            ..JournalRow::default()
        });
        let text = text(&tallies);
        for (wallet, calls, charged) in [
            (wallets[0].to_string(), 2, 114),
            (wallets[1].to_string(), 2, 14),
            ("other".to_owned(), 6, 42),
        ] {
            for line in [
                format!("wallet_calls_total{{wallet=\"{wallet}\"}} {calls}"),
                format!("wallet_charged_micro_credits_total{{wallet=\"{wallet}\"}} {charged}"),
            ] {
                assert!(
                    text.lines().any(|it| it == line),
                    "{line} is missing in\n{text}"
                );
            }
        }
        assert_eq!(
            text.lines()
                .filter(|it| it.starts_with("wallet_calls_total"))
                .count(),
            3
        );
    }
}
