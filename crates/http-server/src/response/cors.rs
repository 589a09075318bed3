//! Lets pages of other origins read answers in a browser (CORS).
//!
//! The page itself sends the API key, so browsers need not send credentials, and are not allowed to.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

const ANY: &str = "*";
/// The methods of all paths.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, DELETE");
/// Headers of our answers that browsers hide from pages unless they are listed here.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-request-id, request-id, x-dropped-params, x-should-retry, retry-after, \
     x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
     x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, \
     content-disposition, content-range, accept-ranges, etag",
);
/// How long a browser may cache a permission, in seconds. Chromium caps it at two hours.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("7200");

/// The origins whose pages may read answers.
#[derive(Debug)]
pub(crate) enum Cors {
    Any,
    Listed(Vec<HeaderValue>),
}

/// The permission that an answer gives to the browser.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The origin that may read the answer.
    origin: Option<HeaderValue>,
    /// Whether the answer would differ for another origin.
    varies: bool,
    /// Whether the request is a preflight, with which a browser asks for permission before it sends the actual request.
    preflight: bool,
    /// The headers that the page wants to send.
    headers: Option<HeaderValue>,
}

impl Cors {
    /// Reads the setting. Returns `None` if it lists no origin.
    pub(crate) fn of(origins: &[String]) -> Option<Self> {
        if origins.is_empty() {
            return None;
        }
        if origins.iter().any(|origin| origin == ANY) {
            return Some(Self::Any);
        }
        let values = origins.iter().map(|origin| HeaderValue::from_str(origin));
        Some(Self::Listed(values.filter_map(Result::ok).collect()))
    }

    pub(crate) fn grant(&self, method: &Method, headers: &HeaderMap) -> Grant {
        let origin = match self {
            // Set even if the request has no origin, because a cache may reuse the answer for a request that has one.
            Self::Any => Some(HeaderValue::from_static(ANY)),
            Self::Listed(listed) => {
                let asking = headers.get(ORIGIN);
                listed.iter().find(|it| asking == Some(*it)).cloned()
            }
        };
        Grant {
            preflight: origin.is_some()
                && method == Method::OPTIONS
                && headers.contains_key(ORIGIN)
                && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD),
            headers: headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned(),
            varies: matches!(self, Self::Listed(_)),
            origin,
        }
    }
}

impl Grant {
    /// Whether the request is a preflight that is granted.
    pub(crate) fn is_preflight(&self) -> bool {
        self.preflight
    }

    pub(crate) fn write(self, answer: &mut HeaderMap) {
        if self.varies {
            answer.append(VARY, HeaderValue::from_static("origin"));
        }
        let Some(origin) = self.origin else { return };
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if !self.preflight {
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            return;
        }
        answer.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
        if let Some(headers) = self.headers {
            answer.append(
                VARY,
                HeaderValue::from_static("access-control-request-headers"),
            );
            answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, headers);
        }
    }
}
