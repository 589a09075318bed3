//! Creates the headers that identify an upstream.
//!
//! A gateway must not pass these headers on, so tests for leaks look for them. Every reply has them, except for replies
//! of the control endpoint and the acceptance of a WebSocket session.

use crate::seed::Seed;
use http::{HeaderMap, HeaderName, HeaderValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    OpenAi,
    Anthropic,
    Google,
    Amazon,
}

impl Vendor {
    pub(crate) fn of_path(path: &str) -> Self {
        if path.starts_with("/v1/messages") || path.starts_with("/anthropic/v1/messages") {
            Self::Anthropic
        } else if path.starts_with("/model/") {
            Self::Amazon
        } else if path.starts_with("/v1beta/")
            || path.starts_with("/v1/interactions")
            || path.contains(":generateContent")
            || path.contains(":streamGenerateContent")
            || path.contains(":countTokens")
            || path.contains(":embedContent")
            || path.contains(":batchEmbedContents")
        {
            Self::Google
        } else {
            Self::OpenAi
        }
    }
}

const EDGE: &[(&str, &str)] = &[
    ("server", "sim-edge/1.4"),
    ("via", "1.1 edge-7.sim-upstream.example"),
    ("x-envoy-upstream-service-time", "11"),
    ("alt-svc", "h3=\":443\"; ma=86400"),
];
const OPENAI: &[(&str, &str)] = &[
    ("openai-organization", "sim-org-4711"),
    ("openai-project", "proj_sim4711"),
    ("openai-version", "2020-10-01"),
    ("openai-processing-ms", "12"),
    ("x-ratelimit-limit-requests", "10000"),
    ("x-ratelimit-limit-tokens", "2000000"),
    ("x-ratelimit-remaining-requests", "9999"),
    ("x-ratelimit-remaining-tokens", "1999321"),
    ("x-ratelimit-reset-requests", "6ms"),
    ("x-ratelimit-reset-tokens", "20ms"),
];
const ANTHROPIC: &[(&str, &str)] = &[
    ("anthropic-organization-id", "sim-org-4711"),
    ("anthropic-workspace-id", "wrkspc_sim4711"),
    ("anthropic-ratelimit-requests-limit", "10000"),
    ("anthropic-ratelimit-requests-remaining", "9999"),
    ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:06Z"),
    ("anthropic-ratelimit-input-tokens-limit", "2000000"),
    ("anthropic-ratelimit-input-tokens-remaining", "1999000"),
    ("anthropic-ratelimit-output-tokens-limit", "400000"),
    ("anthropic-ratelimit-output-tokens-remaining", "399000"),
    ("x-robots-tag", "none"),
];
const GOOGLE: &[(&str, &str)] = &[
    ("x-goog-quota-user-project", "sim-org-4711"),
    ("x-gemini-service-tier", "standard"),
    ("server-timing", "gfet4t7; dur=412"),
    ("vary", "Origin, X-Origin, Referer"),
    ("x-frame-options", "SAMEORIGIN"),
    ("x-xss-protection", "0"),
];

const AMAZON: &[(&str, &str)] = &[
    ("x-amzn-bedrock-input-token-count", "7"),
    ("x-amzn-bedrock-output-token-count", "11"),
    ("x-amzn-bedrock-invocation-latency", "421"),
    ("x-amzn-trace-id", "Root=1-4711-sim"),
];

/// The vendor's id of the call with this number.
pub(crate) fn request_id(seq: u64) -> String {
    format!("req_sim{}", Seed::new(seq).letters(24))
}

/// The headers of the vendor's edge servers and account, and the request id.
pub(crate) fn identity_headers(vendor: Vendor, seq: u64) -> HeaderMap {
    let (own, id_name) = match vendor {
        Vendor::OpenAi => (OPENAI, "x-request-id"),
        Vendor::Anthropic => (ANTHROPIC, "request-id"),
        Vendor::Google => (GOOGLE, "x-request-id"),
        Vendor::Amazon => (AMAZON, "x-amzn-requestid"),
    };
    let mut headers: HeaderMap = EDGE
        .iter()
        .chain(own)
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect();
    let mut seed = Seed::of(&[b"edge", &seq.to_le_bytes()]);
    let ray = format!("{:016x}-SIM", seed.next());
    let cookie = format!(
        "__sim_bm={}; path=/; domain=.sim-upstream.example; HttpOnly; Secure",
        seed.letters(32)
    );
    for (name, value) in [
        (id_name, request_id(seq)),
        ("cf-ray", ray),
        ("set-cookie", cookie),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_the_habits_of_their_vendors() {
        for (path, vendor) in [
            ("/v1/chat/completions", Vendor::OpenAi),
            ("/v1/models/a", Vendor::OpenAi),
            ("/v1/messages", Vendor::Anthropic),
            ("/v1/messages/count_tokens", Vendor::Anthropic),
            ("/v1beta/models/a:generateContent", Vendor::Google),
            ("/v1/models/a:streamGenerateContent", Vendor::Google),
            ("/v1/interactions", Vendor::Google),
            ("/model/a%3A0/invoke", Vendor::Amazon),
        ] {
            assert_eq!(Vendor::of_path(path), vendor, "{path}");
        }
    }

    #[test]
    fn the_request_id_is_told_under_the_name_of_the_vendor() {
        let headers = identity_headers(Vendor::Anthropic, 7);
        assert_eq!(headers["request-id"], request_id(7));
        assert_ne!(request_id(7), request_id(8));
        assert!(!headers.contains_key("openai-organization"));
    }
}
