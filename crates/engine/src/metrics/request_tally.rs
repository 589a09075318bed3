//! Counts requests per thread, and adds the counts up at each scrape.
//!
//! A shared counter would be a cache line that moves between cores with every request.

use std::collections::BTreeMap;
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

/// Bucket bounds in seconds, from a cached answer to a long reasoning run.
const LATENCY_BOUNDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
    600.0,
];

/// The requests of one thread.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally(Mutex<Counts>);

impl Tally {
    /// A request has arrived.
    pub fn arrived(&self) {
        self.0.lock().in_flight += 1;
    }

    /// Counts an answer when its head is sent.
    pub fn answered(&self, endpoint: &'static str, status: u16, after: Duration) {
        let mut counts = self.0.lock();
        let endpoint = counts.of(endpoint);
        *entry(&mut endpoint.statuses, status) += 1;
        endpoint.first_byte.observe(after);
    }

    /// Counts an answer when its body has ended.
    pub fn ended(&self, endpoint: &'static str, after: Duration) {
        let mut counts = self.0.lock();
        counts.in_flight -= 1;
        counts.of(endpoint).latency.observe(after);
    }
}

#[derive(Debug, Default)]
struct Counts {
    in_flight: i64,
    /// A list is enough, because one thread sees only a few endpoints.
    endpoints: Vec<(&'static str, EndpointCounts)>,
}

impl Counts {
    fn of(&mut self, endpoint: &'static str) -> &mut EndpointCounts {
        entry(&mut self.endpoints, endpoint)
    }
}

/// The entry of a key in a short list.
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

/// A histogram. The last count is of values above all bounds.
#[derive(Debug, Default)]
struct Latencies {
    counts: [u64; LATENCY_BOUNDS.len() + 1],
    sum: Duration,
}

impl Latencies {
    fn observe(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let place = LATENCY_BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(time);
    }

    fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
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

/// All tallies of a node.
#[derive(Debug, Default)]
pub(crate) struct RequestTallies(Mutex<Vec<Arc<Tally>>>);

impl RequestTallies {
    /// Adds a new tally.
    pub(crate) fn tally(&self) -> Arc<Tally> {
        let tally = Arc::new(Tally::default());
        self.0.lock().push(Arc::clone(&tally));
        tally
    }
}

impl Collector for RequestTallies {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let mut in_flight = 0;
        let mut endpoints = BTreeMap::<&'static str, EndpointCounts>::new();
        for tally in self.0.lock().iter() {
            let counts = tally.0.lock();
            in_flight += counts.in_flight;
            for (name, counted) in &counts.endpoints {
                endpoints.entry(name).or_default().add(counted);
            }
        }
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
        let mut latencies = |name: &str, about: &str, of: fn(&EndpointCounts) -> &Latencies| {
            let mut to = to.encode_descriptor(name, about, None, MetricType::Histogram)?;
            endpoints.iter().try_for_each(|(endpoint, counted)| {
                let labels = ByEndpoint { endpoint };
                of(counted).encode(to.encode_family(&labels)?)
            })
        };
        latencies("request_seconds", "Time until the answer ended.", |it| {
            &it.latency
        })?;
        latencies("first_byte_seconds", "Time until the answer began.", |it| {
            &it.first_byte
        })
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

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
            tally.answered(endpoint, status, time);
            if ms > 1 {
                tally.ended(endpoint, time);
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
}
