//! Headers by which an upstream can be recognised.
//!
//! A gateway must not let any of them through. They are sent with every reply, so that a test
//! which looks for leaks has something to find.

use crate::seed::Seed;
use http::{HeaderMap, HeaderValue};

/// Headers of the vendor's edge and account, with a fresh request id.
pub(crate) fn identity_headers(seed: &mut Seed) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("server", "sim-edge/1.4"),
        ("via", "1.1 edge-7.sim-upstream.example"),
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
        ("x-envoy-upstream-service-time", "11"),
        ("alt-svc", "h3=\":443\"; ma=86400"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let request_id = format!("req_sim{}", seed.letters(24));
    let ray = format!("{:016x}-SIM", seed.next());
    let cookie = format!(
        "__sim_bm={}; path=/; domain=.sim-upstream.example; HttpOnly; Secure",
        seed.letters(32)
    );
    for (name, value) in [
        ("x-request-id", request_id),
        ("cf-ray", ray),
        ("set-cookie", cookie),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    headers
}
