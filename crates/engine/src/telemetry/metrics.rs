//! Converts the metrics of `/metrics` to the JSON form of OTLP.
//!
//! The metrics are parsed from the text that scrapers get, so that both have the same metrics under the same names. The
//! suffix `_total` is removed, as OTLP expects; collectors that write for Prometheus append it again.

use serde::Serialize;

use super::otlp::{Attribute, Int64Text, Resource, Scope};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetricsRequest<'a> {
    resource_metrics: [ResourceMetrics<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics<'a> {
    resource: Resource<'a>,
    scope_metrics: [ScopeMetrics<'a>; 1],
}

#[derive(Debug, Serialize)]
struct ScopeMetrics<'a> {
    scope: Scope,
    metrics: Vec<Metric<'a>>,
}

#[derive(Debug, Serialize)]
struct Metric<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(flatten)]
    data: Data<'a>,
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: values count from the start of the node.
const CUMULATIVE: u8 = 2;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Data<'a> {
    Gauge {
        data_points: Vec<NumberPoint<'a>>,
    },
    Sum {
        aggregation_temporality: u8,
        is_monotonic: bool,
        data_points: Vec<NumberPoint<'a>>,
    },
    Histogram {
        aggregation_temporality: u8,
        data_points: Vec<HistogramPoint<'a>>,
    },
}

/// The start of the counting period and the time of the reading, in wall-clock nanoseconds.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PointTimes {
    start_time_unix_nano: Int64Text<u64>,
    time_unix_nano: Int64Text<u64>,
}

impl PointTimes {
    /// Both arguments are in milliseconds.
    pub(super) fn new(started_ms: i64, now_ms: i64) -> Self {
        let nanos = |ms: i64| Int64Text(u64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000));
        Self {
            start_time_unix_nano: nanos(started_ms),
            time_unix_nano: nanos(now_ms),
        }
    }
}

#[derive(Debug, Serialize)]
struct NumberPoint<'a> {
    attributes: Vec<Attribute<'a>>,
    #[serde(flatten)]
    times: PointTimes,
    #[serde(flatten)]
    value: Number,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Number {
    AsInt(Int64Text<i64>),
    AsDouble(f64),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HistogramPoint<'a> {
    attributes: Vec<Attribute<'a>>,
    #[serde(flatten)]
    times: PointTimes,
    count: Int64Text<u64>,
    sum: f64,
    bucket_counts: Vec<Int64Text<u64>>,
    explicit_bounds: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exemplars: Vec<Exemplar<'a>>,
}

/// An exemplar: a measured value, and the trace that it belongs to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Exemplar<'a> {
    time_unix_nano: Int64Text<u64>,
    as_double: f64,
    trace_id: &'a str,
}

/// The body of one delivery. `text` is what a scraper would get.
pub(super) fn request<'a>(
    resource: Vec<Attribute<'a>>,
    text: &'a str,
    times: PointTimes,
) -> MetricsRequest<'a> {
    let families = families(text);
    let metrics = families.into_iter().filter_map(|it| it.metric(times));
    MetricsRequest {
        resource_metrics: [ResourceMetrics {
            resource: Resource {
                attributes: resource,
            },
            scope_metrics: [ScopeMetrics {
                scope: Scope::OURS,
                metrics: metrics.collect(),
            }],
        }],
    }
}

/// One metric of the text with all its samples.
#[derive(Debug)]
struct Family<'t> {
    name: &'t str,
    help: &'t str,
    kind: &'t str,
    samples: Vec<Sample<'t>>,
}

#[derive(Debug)]
struct Sample<'t> {
    /// The part after the name of the family, such as `_total`.
    suffix: &'t str,
    labels: Vec<(&'t str, String)>,
    value: &'t str,
    exemplar: Option<Exemplar<'t>>,
}

/// Parses the families of a text. A line that cannot be parsed is left out.
fn families(text: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or((rest, ""));
            families.push(Family {
                name,
                help,
                kind: "",
                samples: Vec::new(),
            });
        } else if let Some(family) = families.last_mut() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family.kind = rest.split_once(' ').map_or("", |(_, kind)| kind);
            } else if let Some(sample) = sample(line, family.name) {
                family.samples.push(sample);
            }
        }
    }
    families
}

/// Parses `name_suffix{label="value",…} number`, optionally followed by an exemplar.
fn sample<'t>(line: &'t str, family: &str) -> Option<Sample<'t>> {
    let rest = line.strip_prefix(family)?;
    let end = rest.find(['{', ' '])?;
    let (suffix, rest) = rest.split_at(end);
    let mut labels = Vec::new();
    let rest = match rest.strip_prefix('{') {
        Some(inside) => read_labels(inside, &mut labels)?,
        None => rest,
    };
    let (value, exemplar) = match rest.split_once(" # ") {
        Some((value, exemplar)) => (value, read_exemplar(exemplar)),
        None => (rest, None),
    };
    Some(Sample {
        suffix,
        labels,
        value: value.split_whitespace().next()?,
        exemplar,
    })
}

/// Parses `{trace_id="…"} value seconds.millis`.
fn read_exemplar(text: &str) -> Option<Exemplar<'_>> {
    let (trace_id, rest) = text.strip_prefix("{trace_id=\"")?.split_once("\"} ")?;
    let (value, at) = rest.split_once(' ')?;
    let (seconds, millis) = at.split_once('.')?;
    let at_ms: u64 = format!("{seconds}{millis}").parse().ok()?;
    Some(Exemplar {
        time_unix_nano: Int64Text(at_ms.saturating_mul(1_000_000)),
        as_double: finite(value)?,
        trace_id,
    })
}

/// Parses labels up to the closing brace, and returns the rest of the text.
fn read_labels<'t>(text: &'t str, labels: &mut Vec<(&'t str, String)>) -> Option<&'t str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(after) = rest.strip_prefix('}') {
            return Some(after);
        }
        let (name, value) = rest.split_once("=\"")?;
        let mut read = String::new();
        let mut letters = value.char_indices();
        loop {
            match letters.next()? {
                (at, '"') => {
                    labels.push((name, read));
                    rest = value.get(at + 1..)?;
                    break;
                }
                (_, '\\') => match letters.next()?.1 {
                    'n' => read.push('\n'),
                    other => read.push(other),
                },
                (_, other) => read.push(other),
            }
        }
    }
}

impl<'t> Family<'t> {
    /// Converts the family to a metric; `None` if it has no values.
    fn metric(self, times: PointTimes) -> Option<Metric<'t>> {
        let data = match self.kind {
            "gauge" => Data::Gauge {
                data_points: number_points(self.samples, "", times),
            },
            "counter" => Data::Sum {
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
                data_points: number_points(self.samples, "_total", times),
            },
            "histogram" => Data::Histogram {
                aggregation_temporality: CUMULATIVE,
                data_points: histogram_points(self.samples, times),
            },
            _ => return None,
        };
        let is_empty = match &data {
            Data::Gauge { data_points } | Data::Sum { data_points, .. } => data_points.is_empty(),
            Data::Histogram { data_points, .. } => data_points.is_empty(),
        };
        (!is_empty).then_some(Metric {
            name: self.name,
            description: self.help,
            data,
        })
    }
}

fn number_points<'t>(
    samples: Vec<Sample<'t>>,
    suffix: &str,
    times: PointTimes,
) -> Vec<NumberPoint<'t>> {
    let of_suffix = samples.into_iter().filter(|it| it.suffix == suffix);
    let point = |sample: Sample<'t>| {
        let value = match sample.value.parse() {
            Ok(value) => Number::AsInt(Int64Text(value)),
            Err(_) => Number::AsDouble(finite(sample.value)?),
        };
        Some(NumberPoint {
            attributes: attributes(sample.labels),
            times,
            value,
        })
    };
    of_suffix.filter_map(point).collect()
}

/// Parses a finite number; JSON has no others.
fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|it: &f64| it.is_finite())
}

fn attributes(labels: Vec<(&str, String)>) -> Vec<Attribute<'_>> {
    let label = |(key, value)| Attribute::label(key, value);
    labels.into_iter().map(label).collect()
}

/// A histogram under construction. Its buckets are cumulative.
#[derive(Debug, Default)]
struct Histogram<'t> {
    labels: Vec<(&'t str, String)>,
    sum: f64,
    count: u64,
    bounds: Vec<f64>,
    up_to: Vec<u64>,
    exemplars: Vec<Exemplar<'t>>,
}

fn histogram_points<'t>(samples: Vec<Sample<'t>>, times: PointTimes) -> Vec<HistogramPoint<'t>> {
    let mut histograms: Vec<Histogram<'t>> = Vec::new();
    for mut sample in samples {
        let bound = sample.labels.iter().position(|(name, _)| *name == "le");
        let bound = bound.map(|at| sample.labels.remove(at).1);
        let place = histograms.iter().position(|it| it.labels == sample.labels);
        let place = place.unwrap_or_else(|| {
            histograms.push(Histogram {
                labels: sample.labels,
                ..Histogram::default()
            });
            histograms.len() - 1
        });
        let Some(histogram) = histograms.get_mut(place) else {
            continue;
        };
        match (sample.suffix, bound) {
            ("_sum", _) => histogram.sum = finite(sample.value).unwrap_or_default(),
            ("_count", _) => histogram.count = sample.value.parse().unwrap_or_default(),
            ("_bucket", Some(bound)) => {
                histogram
                    .up_to
                    .push(sample.value.parse().unwrap_or_default());
                // The last bucket has no upper bound.
                histogram.bounds.extend(finite(&bound));
                histogram.exemplars.extend(sample.exemplar);
            }
            _ => {}
        }
    }
    let point = |it: Histogram<'t>| {
        let before = std::iter::once(0).chain(it.up_to.iter().copied());
        let counts = it.up_to.iter().zip(before);
        let counts = counts.map(|(up_to, before)| Int64Text(up_to.saturating_sub(before)));
        HistogramPoint {
            bucket_counts: counts.collect(),
            attributes: attributes(it.labels),
            times,
            count: Int64Text(it.count),
            sum: it.sum,
            explicit_bounds: it.bounds,
            exemplars: it.exemplars,
        }
    };
    histograms.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TEXT: &str = "\
# HELP t_in_flight Requests being served.
# TYPE t_in_flight gauge
t_in_flight -1
# HELP t_ratio A part.
# TYPE t_ratio gauge
t_ratio 0.5
# HELP t_empty Nothing yet.
# TYPE t_empty counter
# HELP t_requests Requests answered.
# TYPE t_requests counter
t_requests_total{endpoint=\"/v1/{id}\",status=\"200\"} 18446744073709551615
t_requests_total{endpoint=\"a \\\"b\\\\\\n}, c\",status=\"\"} 2
# HELP t_seconds Time.
# TYPE t_seconds histogram
t_seconds_sum{endpoint=\"x\"} 7.5
t_seconds_count{endpoint=\"x\"} 4
t_seconds_bucket{le=\"0.5\",endpoint=\"x\"} 1
t_seconds_bucket{le=\"1.0\",endpoint=\"x\"} 1
t_seconds_bucket{le=\"+Inf\",endpoint=\"x\"} 4 # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"} 1.5 1700000000.007
t_seconds_sum{endpoint=\"y\"} 0.0
t_seconds_count{endpoint=\"y\"} 0
t_seconds_bucket{le=\"0.5\",endpoint=\"y\"} 0
t_seconds_bucket{le=\"1.0\",endpoint=\"y\"} 0
t_seconds_bucket{le=\"+Inf\",endpoint=\"y\"} 0
# EOF
";

    fn exported(text: &str) -> Vec<Value> {
        let times = PointTimes::new(1_000, 2_000);
        let body = request(Vec::new(), text, times);
        let body = serde_json::to_value(&body).unwrap();
        let metrics = &body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        metrics.as_array().unwrap().clone()
    }

    #[test]
    fn every_kind_of_metric_is_told_as_otlp_has_it() {
        let metrics = exported(TEXT);
        let names: Vec<_> = metrics
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["t_in_flight", "t_ratio", "t_requests", "t_seconds"]);
        let [in_flight, ratio, requests, seconds] = metrics.as_slice() else {
            panic!("{metrics:?}");
        };
        assert_eq!(in_flight["description"], "Requests being served.");
        assert_eq!(
            in_flight["gauge"]["dataPoints"],
            json!([{
                "attributes": [], "asInt": "-1",
                "startTimeUnixNano": "1000000000", "timeUnixNano": "2000000000",
            }])
        );
        assert_eq!(ratio["gauge"]["dataPoints"][0]["asDouble"], 0.5);
        assert_eq!(requests["sum"]["isMonotonic"], true);
        assert_eq!(requests["sum"]["aggregationTemporality"], 2);
        let points = requests["sum"]["dataPoints"].as_array().unwrap();
        assert_eq!(
            points[1]["attributes"],
            json!([
                { "key": "endpoint", "value": { "stringValue": "a \"b\\\n}, c" } },
                { "key": "status", "value": { "stringValue": "" } },
            ])
        );
        assert_eq!(points[1]["asInt"], "2");
        // The value does not fit in a signed integer.
        assert!(points[0]["asDouble"].is_f64(), "{}", points[0]);
        let points = seconds["histogram"]["dataPoints"].as_array().unwrap();
        assert_eq!(points.len(), 2);
        assert_eq!(points[0]["count"], "4");
        assert_eq!(points[0]["sum"], 7.5);
        assert_eq!(points[0]["bucketCounts"], json!(["1", "0", "3"]));
        assert_eq!(points[0]["explicitBounds"], json!([0.5, 1.0]));
        assert_eq!(
            points[0]["exemplars"],
            json!([{
                "timeUnixNano": "1700000000007000000",
                "asDouble": 1.5,
                "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
            }])
        );
        assert_eq!(points[1]["exemplars"], Value::Null);
        assert_eq!(
            points[1]["attributes"],
            json!([{ "key": "endpoint", "value": { "stringValue": "y" } }])
        );
    }

    #[test]
    fn lines_that_cannot_be_read_are_left_out() {
        for text in [
            "",
            "nothing",
            "# HELP x",
            "# HELP x y\n# TYPE x gauge\nx{",
            "# HELP x y\n# TYPE x gauge\nx{a=\"",
            "# HELP x y\n# TYPE x gauge\nx{a=\"b\\",
            "# HELP x y\n# TYPE x gauge\nx NaN",
            "# HELP x y\n# TYPE x info\nx 1",
            "# HELP x y\n# TYPE x\nx",
        ] {
            assert_eq!(exported(text), Vec::<Value>::new(), "{text}");
        }
    }

    /// Checks that all metrics of the node are converted.
    #[test]
    fn every_metric_of_a_scrape_is_told() {
        let metrics = crate::metrics::registry::Metrics::new();
        let tally = metrics.tally();
        tally.arrived();
        tally.answered(
            "/v1/balance",
            200,
            std::time::Duration::from_millis(3),
            None,
        );
        let text = metrics.render(&crate::metrics::registry::ScrapeValues::default());
        let exported = exported(&text);
        let has_values = |block: &&str| block.lines().any(|it| it.starts_with("tollgate_"));
        let blocks = text.split("# HELP ").skip(1);
        let blocks: Vec<_> = blocks
            .filter(|block| has_values(&block.split_once('\n').map_or("", |(_, rest)| rest)))
            .collect();
        assert_eq!(exported.len(), blocks.len());
        for (metric, block) in exported.iter().zip(blocks) {
            let name = block.split(' ').next().unwrap();
            assert_eq!(metric["name"], name);
        }
    }
}
