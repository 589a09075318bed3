//! The settings of a simulator.

use std::time::Duration;

/// The behaviour of a simulator. The defaults are meant for tests.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The delay between the content events of a stream. The demo sets it, so that streaming is visible.
    pub pace: Option<Duration>,
    /// Keys and client secrets that are refused.
    pub refused_keys: Vec<String>,
    /// Keys whose account has no credit. Each protocol refuses them as its vendor does, for example Chat with 429 and
    /// `insufficient_quota`. The clouds in `cloud/` accept them.
    pub keys_without_credit: Vec<String>,
    /// The keys that may sign requests.
    pub access_keys: Vec<AccessKey>,
    pub request_bytes_max: usize,
    pub connections_max: usize,
    /// Limits of the call log.
    pub calls_max: usize,
    pub call_body_bytes_max: usize,
    pub calls_bytes_max: usize,
}

/// A key with which requests are signed.
#[derive(Debug, Clone)]
pub struct AccessKey {
    pub id: String,
    pub secret: String,
    /// Only temporary keys have a session token.
    pub session_token: Option<String>,
    /// The region that the signature of a request must name.
    pub region: String,
}

impl AccessKey {
    fn new(id: &str, session_token: Option<&str>) -> Self {
        Self {
            id: id.to_owned(),
            secret: "sim/secret+access-key-4711".to_owned(),
            session_token: session_token.map(str::to_owned),
            region: "us-east-1".to_owned(),
        }
    }
}

impl Settings {
    /// Whether a key or client secret is refused.
    pub(crate) fn refuses(&self, key: &str) -> bool {
        self.refused_keys.iter().any(|refused| refused == key)
    }

    pub(crate) fn has_no_credit(&self, key: &str) -> bool {
        self.keys_without_credit.iter().any(|poor| poor == key)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pace: None,
            refused_keys: vec!["sim-bad-key".to_owned()],
            keys_without_credit: vec!["sim-poor-key".to_owned()],
            access_keys: vec![
                AccessKey::new("AKIASIM4711", None),
                AccessKey::new("ASIASIM4711", Some("sim-session/4711+token==")),
            ],
            request_bytes_max: 128 << 20,
            connections_max: 4096,
            calls_max: 1000,
            call_body_bytes_max: 2 << 20,
            calls_bytes_max: 64 << 20,
        }
    }
}
