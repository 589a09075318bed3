//! `[telemetry]`: traces and metrics for the operator's collector.

use std::time::Duration;

use engine::SampleRatio;
use http::{HeaderMap, HeaderName, HeaderValue};
use ledger::Micro;
use percent_encoding::percent_decode_str;
use toml::de::DeValue;
use upstream::{Network, OperatorEndpoint};

use crate::config::document::setting::{
    flag, list, millis, name, optional, secret, settings, single,
};
use crate::config::document::{SecretSource, Section, kind_of, value};

settings! {
    /// Traces and metrics for the operator's collector.
    pub struct Telemetry in "telemetry" {
        /// The base URL of a collector that accepts OTLP over HTTP in JSON, usually on port 4318. Each call is sent to
        /// `/v1/traces` below it as a span, with a child span for each route that was tried. Nothing is sent without
        /// it.
        pub otlp_url: Option<String> = optional("otlp_url", collector_url, r#""http://collector:4318""#),
        /// Additional headers for the collector, such as its key: one line `name=value,name2=value2` in the environment
        /// or in a file, with percent-encoded values.
        pub headers: Option<SecretSource> = secret("headers", r#"{ env = "TOLLGATE_OTLP_HEADERS" }"#),
        /// The name of this gateway at the collector.
        pub service_name: String = name("service_name", "tollgate"),
        /// The fraction of calls that is traced, from 0 to 1, with at most six decimals.
        pub sample_ratio: SampleRatio = single("sample_ratio", SampleRatio::ALL, "1.0", read_ratio),
        /// Whether the metrics of `/metrics` are also sent, to `/v1/metrics` below `otlp_url`.
        pub metrics: bool = flag("metrics", false),
        /// How often the metrics are sent.
        pub metrics_every: Duration = millis("metrics_every_ms", 60_000),
        /// The number of wallets that have their own series in `/metrics`, at most 10000: the first ones that make a
        /// call after the start of the node. All others are counted together.
        pub wallet_series: usize = single("wallet_series", 0, "0", read_wallet_series),
        /// Address ranges of callers whose `traceparent` header is honoured, such as `["10.0.0.0/8"]`: their calls are
        /// spans of the caller's own trace. Behind a proxy this is the proxy's address. The header of all other callers
        /// is ignored.
        pub trusted_callers: Vec<Network> = list("trusted_callers", value::network),
    }
}

fn collector_url(raw: &DeValue<'_>) -> Result<String, String> {
    let url = value::web_address(raw)?;
    OperatorEndpoint::new(&url).map_err(|_| "must be an address that can be called".to_owned())?;
    Ok(url)
}

fn read_ratio(raw: &DeValue<'_>) -> Result<SampleRatio, String> {
    let text = match raw {
        DeValue::Float(number) => number.as_str(),
        DeValue::Integer(number) => number.as_str(),
        other => {
            let found = kind_of(other);
            return Err(format!("must be a number from 0 to 1, found {found}"));
        }
    };
    // `Micro` also has six decimals, so it can parse the ratio.
    let parts: Option<Micro> = text.parse().ok();
    let parts = parts.and_then(|parts| u32::try_from(parts.get()).ok());
    let ratio = parts.and_then(SampleRatio::of_million);
    ratio.ok_or_else(|| "must be a number from 0 to 1 with at most six decimals".to_owned())
}

fn read_wallet_series(raw: &DeValue<'_>) -> Result<usize, String> {
    const WALLETS_MAX: usize = 10_000;
    match value::count(raw)? {
        count if count > WALLETS_MAX => Err(format!("must be at most {WALLETS_MAX}")),
        count => Ok(count),
    }
}

/// Headers that the exporter sets itself.
const OWN_HEADERS: [&str; 6] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];

/// Reads `name=value,name2=value2`. An error does not repeat the text, which is a secret.
pub(crate) fn read_headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (index, pair) in text.split(',').enumerate() {
        let wrong = |what: &str| format!("part {} of the headers {what}", index + 1);
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| wrong("is not of the form name=value"))?;
        let name: HeaderName = name
            .trim()
            .parse()
            .map_err(|_| wrong("has a name that is none"))?;
        if OWN_HEADERS.contains(&name.as_str()) {
            return Err(wrong("is a header of the delivery itself"));
        }
        let value: Vec<u8> = percent_decode_str(value.trim()).collect();
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| wrong("has a value that a header cannot carry"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pairs_and_their_values_are_not_shown() {
        let headers = read_headers("x-api-key=s3cret, authorization=Basic%20dXNlcg==").unwrap();
        assert_eq!(headers["x-api-key"], "s3cret");
        assert_eq!(headers["authorization"], "Basic dXNlcg==");
        assert!(!format!("{headers:?}").contains("s3cret"));
        for text in [
            "",
            "s3cret",
            "=s3cret",
            "a b=s3cret",
            "x=%0As3cret",
            "a=1,,b=s3cret",
        ] {
            let error = read_headers(text).unwrap_err();
            assert!(!error.contains("s3cret"), "{text}: {error}");
        }
        for name in OWN_HEADERS {
            assert!(read_headers(&format!("{name}=1")).is_err(), "{name}");
        }
    }
}
