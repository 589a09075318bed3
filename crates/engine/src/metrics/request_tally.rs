//! Counts requests per thread, and adds up the counts at each scrape.
//!
//! The cache line of a shared counter would move between cores with every request.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::exemplars::{Exemplar, TracedMoment};

/// Bucket bounds in seconds, from a cached answer to a long reasoning run.
const LATENCY_BOUNDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
    600.0,
];

/// The request counts of one thread.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally(Mutex<Counts>);

impl Tally {
    /// Counts a request that has arrived.
    pub fn arrived(&self) {
        self.0.lock().in_flight += 1;
    }

    /// Counts an answer when its head is sent. `traced` is the request's trace, if it has one.
    pub fn answered(
        &self,
        endpoint: &'static str,
        status: u16,
        after: Duration,
        traced: Option<TracedMoment>,
    ) {
        let mut counts = self.0.lock();
        let endpoint = counts.of(endpoint);
        *entry(&mut endpoint.statuses, status) += 1;
        endpoint.first_byte.observe(after, traced);
    }

    /// Counts an answer when its body has ended.
    pub fn ended(&self, endpoint: &'static str, after: Duration, traced: Option<TracedMoment>) {
        let mut counts = self.0.lock();
        counts.in_flight -= 1;
        counts.of(endpoint).latency.observe(after, traced);
    }
}

#[derive(Debug, Default)]
struct Counts {
    in_flight: i64,
    /// A list is enough, because one thread serves only a few endpoints.
    endpoints: Vec<(&'static str, EndpointCounts)>,
}

impl Counts {
    fn of(&mut self, endpoint: &'static str) -> &mut EndpointCounts {
        entry(&mut self.endpoints, endpoint)
    }
}

/// Finds or adds the entry of a key in a short list.
fn entry<K: PartialEq, V: Default>(list: &mut Vec<(K, V)>, name: K) -> &mut V {
    let place = list.iter().position(|(it, _)| *it == name);
    let place = place.unwrap_or_else(|| {
        list.push((name, V::default()));
        list.len() - 1
    });
    &mut list[place].1
}

#[derive(Debug, Default)]
struct EndpointCounts {
    statuses: Vec<(u16, u64)>,
    first_byte: Latencies,
    latency: Latencies,
}

impl EndpointCounts {
    fn add(&mut self, other: &Self) {
        for (status, count) in &other.statuses {
            *entry(&mut self.statuses, *status) += count;
        }
        self.first_byte.add(&other.first_byte);
        self.latency.add(&other.latency);
    }
}

/// One bucket for each bound, and one for values above all bounds.
const BUCKETS: usize = LATENCY_BOUNDS.len() + 1;

#[derive(Debug, Default)]
struct Latencies {
    counts: [u64; BUCKETS],
    sum: Duration,
    /// The last traced request of each bucket. Nothing is allocated before the first one.
    exemplars: Option<Box<[Option<Exemplar>; BUCKETS]>>,
}

impl Latencies {
    fn observe(&mut self, time: Duration, traced: Option<TracedMoment>) {
        let seconds = time.as_secs_f64();
        let place = LATENCY_BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(time);
        if let Some(moment) = traced
            && let Some(last) = self.exemplars.get_or_insert_default().get_mut(place)
        {
            *last = Some(Exemplar { moment, took: time });
        }
    }

    fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
        let Some(exemplars) = &other.exemplars else {
            return;
        };
        let ours = self.exemplars.get_or_insert_default();
        for (ours, theirs) in ours.iter_mut().zip(exemplars.iter().copied()) {
            // `None` is less than any time.
            if theirs.map(|it| it.moment.at) > ours.map(|it| it.moment.at) {
                *ours = theirs;
            }
        }
    }

    /// The exemplars, each with the upper bound of its bucket as written in the text.
    fn exemplars(&self) -> impl Iterator<Item = (String, Exemplar)> {
        let bounds = LATENCY_BOUNDS.iter().map(|bound| format!("{bound:?}"));
        let bounds = bounds.chain(["+Inf".to_owned()]);
        let exemplars = self.exemplars.iter().flat_map(|it| it.iter().copied());
        bounds
            .zip(exemplars)
            .filter_map(|(bound, exemplar)| Some((bound, exemplar?)))
    }

    fn encode(&self, mut to: MetricEncoder<'_>) -> fmt::Result {
        let bounds = LATENCY_BOUNDS.into_iter().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(self.counts).collect();
        let count = self.counts.iter().sum();
        to.encode_histogram::<NoLabelSet>(self.sum.as_secs_f64(), count, &buckets, None)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEndpointAndStatus {
    endpoint: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEndpoint {
    endpoint: &'static str,
}

#[derive(Debug, Default)]
pub(crate) struct RequestTallies(Mutex<Vec<Arc<Tally>>>);

impl RequestTallies {
    pub(crate) fn tally(&self) -> Arc<Tally> {
        let tally = Arc::new(Tally::default());
        self.0.lock().push(Arc::clone(&tally));
        tally
    }

    /// The requests in flight and the counts of each endpoint, summed over all threads.
    fn sum(&self) -> (i64, BTreeMap<&'static str, EndpointCounts>) {
        let mut in_flight = 0;
        let mut endpoints = BTreeMap::<&'static str, EndpointCounts>::new();
        for tally in self.0.lock().iter() {
            let counts = tally.0.lock();
            in_flight += counts.in_flight;
            for (name, counted) in &counts.endpoints {
                endpoints.entry(name).or_default().add(counted);
            }
        }
        (in_flight, endpoints)
    }

    /// The exemplars, by the name of their bucket's series as written in the text, which begins with `prefix`.
    pub(super) fn exemplars(&self, prefix: &str) -> HashMap<String, Exemplar> {
        let (_, endpoints) = self.sum();
        let mut found = HashMap::new();
        for (endpoint, counted) in &endpoints {
            for histogram in &HISTOGRAMS {
                for (bound, exemplar) in (histogram.read)(counted).exemplars() {
                    let name = histogram.name;
                    let labels = format!("le=\"{bound}\",endpoint=\"{endpoint}\"");
                    found.insert(format!("{prefix}_{name}_bucket{{{labels}}}"), exemplar);
                }
            }
        }
        found
    }
}

struct HistogramOfEndpoint {
    name: &'static str,
    about: &'static str,
    read: fn(&EndpointCounts) -> &Latencies,
}

const HISTOGRAMS: [HistogramOfEndpoint; 2] = [
    HistogramOfEndpoint {
        name: "request_seconds",
        about: "Time until the answer ended.",
        read: |it| &it.latency,
    },
    HistogramOfEndpoint {
        name: "first_byte_seconds",
        about: "Time until the answer began.",
        read: |it| &it.first_byte,
    },
];

impl Collector for RequestTallies {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let (in_flight, endpoints) = self.sum();
        let about = "Requests being served.";
        let gauge = to.encode_descriptor("in_flight", about, None, MetricType::Gauge)?;
        ConstGauge::new(in_flight).encode(gauge)?;

        let about = "Requests answered.";
        let mut requests = to.encode_descriptor("requests", about, None, MetricType::Counter)?;
        for (endpoint, counted) in &endpoints {
            for &(status, count) in &counted.statuses {
                let labels = ByEndpointAndStatus { endpoint, status };
                ConstCounter::new(count).encode(requests.encode_family(&labels)?)?;
            }
        }
        for HistogramOfEndpoint { name, about, read } in &HISTOGRAMS {
            let mut to = to.encode_descriptor(name, about, None, MetricType::Histogram)?;
            for (endpoint, counted) in &endpoints {
                let labels = ByEndpoint { endpoint };
                read(counted).encode(to.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ledger::UnixMs;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::metrics::exemplars::append;
    use crate::telemetry::Traceparent;

    #[test]
    fn a_scrape_adds_up_what_all_threads_have_counted() {
        let tallies = Arc::new(RequestTallies::default());
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(&tallies)));
        let tallies = [tallies.tally(), tallies.tally()];
        for (tally, endpoint, status, ms) in [
            (0, "/v1/balance", 200, 1),
            (1, "/v1/balance", 200, 2),
            (1, "/v1/balance", 401, 700_000),
            (0, "/v1/models", 200, 10),
        ] {
            let (tally, time): (&Tally, _) = (&tallies[tally], Duration::from_millis(ms));
            tally.arrived();
            tally.answered(endpoint, status, time, None);
            if ms > 1 {
                tally.ended(endpoint, time, None);
            }
        }
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "in_flight 1",
            r#"requests_total{endpoint="/v1/balance",status="200"} 2"#,
            r#"requests_total{endpoint="/v1/balance",status="401"} 1"#,
            r#"requests_total{endpoint="/v1/models",status="200"} 1"#,
            r#"first_byte_seconds_bucket{le="0.001",endpoint="/v1/balance"} 1"#,
            r#"first_byte_seconds_bucket{le="0.0025",endpoint="/v1/balance"} 2"#,
            r#"first_byte_seconds_bucket{le="600.0",endpoint="/v1/balance"} 2"#,
            r#"first_byte_seconds_bucket{le="+Inf",endpoint="/v1/balance"} 3"#,
            r#"first_byte_seconds_sum{endpoint="/v1/balance"} 700.003"#,
            r#"first_byte_seconds_count{endpoint="/v1/balance"} 3"#,
            r#"request_seconds_count{endpoint="/v1/balance"} 2"#,
            r#"request_seconds_bucket{le="0.01",endpoint="/v1/models"} 1"#,
        ] {
            assert!(
                text.lines().any(|it| it == line),
                "{line} is missing in\n{text}"
            );
        }
    }

    #[test]
    fn a_bucket_shows_the_trace_of_its_last_request() {
        let tallies = Arc::new(RequestTallies::default());
        let mut registry = Registry::with_prefix("t");
        registry.register_collector(Box::new(Arc::clone(&tallies)));
        let threads = [tallies.tally(), tallies.tally()];
        let traced = |number: u8, at: i64| {
            let header = format!("00-{number:032x}-00f067aa0ba902b7-01");
            let trace = Traceparent::read(header.as_bytes()).unwrap().trace_id();
            let at = UnixMs::new(at);
            Some(TracedMoment { trace, at })
        };
        for (thread, ms, traced) in [
            (0, 3, traced(1, 1_700_000_000_007)),
            // Another thread has seen a newer request in the same bucket, and an older one in the last bucket.
            (1, 4, traced(2, 1_700_000_000_120)),
            (1, 700_000, traced(3, 1_700_000_000_001)),
            (0, 600_001, traced(4, 1_700_000_001_000)),
            // Requests that are not traced do not replace an exemplar.
            (0, 4, None),
            (0, 60, None),
        ] {
            let (tally, time): (&Tally, _) = (&threads[thread], Duration::from_millis(ms));
            tally.arrived();
            tally.answered("/v1/x", 200, time, traced);
            tally.ended("/v1/x", time, None);
        }
        let mut plain = String::new();
        encode(&mut plain, &registry).unwrap();
        let exemplars = tallies.exemplars("t");
        let text = append(&plain, &exemplars);
        let shown: Vec<_> = text.lines().filter(|it| it.contains(" # {")).collect();
        let (two, four) = (format!("{:032x}", 2), format!("{:032x}", 4));
        assert_eq!(
            shown,
            [
                format!(
                    "t_first_byte_seconds_bucket{{le=\"0.005\",endpoint=\"/v1/x\"}} 3 # {{trace_id=\"{two}\"}} 0.004 1700000000.120"
                ),
                format!(
                    "t_first_byte_seconds_bucket{{le=\"+Inf\",endpoint=\"/v1/x\"}} 6 # {{trace_id=\"{four}\"}} 600.001 1700000001.000"
                ),
            ]
        );
        // Apart from the exemplars, the texts are the same.
        let without = |line: &str| line.split(" # {").next().unwrap().to_owned() + "\n";
        assert_eq!(text.lines().map(without).collect::<String>(), plain);
    }

    #[test]
    fn every_bucket_can_show_an_exemplar() {
        let tallies = Arc::new(RequestTallies::default());
        let mut registry = Registry::with_prefix("t");
        registry.register_collector(Box::new(Arc::clone(&tallies)));
        let header = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = Traceparent::read(header).unwrap().trace_id();
        let traced = Some(TracedMoment {
            trace,
            at: UnixMs::new(0),
        });
        let tally = tallies.tally();
        for seconds in LATENCY_BOUNDS.into_iter().chain([601.0]) {
            tally.answered("/v1/x", 200, Duration::from_secs_f64(seconds), traced);
            tally.ended("/v1/x", Duration::from_secs_f64(seconds), traced);
        }
        let mut plain = String::new();
        encode(&mut plain, &registry).unwrap();
        let text = append(&plain, &tallies.exemplars("t"));
        let buckets = text.lines().filter(|it| it.contains("_bucket{"));
        let shown =
            buckets.filter(|it| it.contains(" # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"} "));
        assert_eq!(shown.count(), 2 * BUCKETS, "{text}");
    }
}
