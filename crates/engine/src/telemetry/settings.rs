//! The settings of telemetry.

use std::time::Duration;

use http::HeaderMap;

use super::trace_context::SampleRatio;

/// The collector that gets the telemetry, and how much is sent.
#[derive(Debug, Clone)]
pub struct TelemetrySettings {
    /// The base URL of an OTLP collector. If absent, nothing is sent.
    pub otlp_url: Option<String>,
    /// Additional headers of each delivery. Their values may be secrets.
    pub headers: HeaderMap,
    pub service_name: String,
    /// The name of this node; a random one if absent.
    pub node: Option<String>,
    /// The fraction of calls that is traced.
    pub sample_ratio: SampleRatio,
    /// How often the metrics are sent; `None` if they are not sent.
    pub metrics_every: Option<Duration>,
    /// The maximum number of wallets that have their own metrics.
    pub wallet_series: usize,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self {
            otlp_url: None,
            headers: HeaderMap::new(),
            service_name: "tollgate".to_owned(),
            node: None,
            sample_ratio: SampleRatio::ALL,
            metrics_every: None,
            wallet_series: 0,
        }
    }
}
