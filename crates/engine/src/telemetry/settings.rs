//! Settings of telemetry.

use std::time::Duration;

use http::HeaderMap;

use super::trace_context::SampleRatio;

/// Where telemetry goes, and how much of it.
#[derive(Debug, Clone)]
pub struct TelemetrySettings {
    /// The base URL of an OTLP collector. Nothing is sent without it.
    pub otlp_url: Option<String>,
    /// Further headers of each delivery. Their values may be secrets.
    pub headers: HeaderMap,
    pub service_name: String,
    /// The name of this node; a random one if absent.
    pub node: Option<String>,
    /// The fraction of calls that is traced.
    pub sample_ratio: SampleRatio,
    /// How often the metrics are sent; `None` if they are not.
    pub metrics_every: Option<Duration>,
    /// How many wallets have metrics of their own.
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
