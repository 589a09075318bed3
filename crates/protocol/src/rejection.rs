//! Reads the error of an upstream and decides who caused it.
//!
//! The error bodies of all protocols are similar enough to be read in one place. Each is an object with a
//! message and a few words that classify the error. The object may be inside `error` or inside an array.

mod vendors;

use serde_json::Value;

use self::vendors::{CONTEXT_OVERFLOW, ErrorPatterns, NO_SUCH_MODEL};
use crate::failure::Failure;
use crate::json::{Raw, Shape};
use crate::scrub::{Names, explain, explain_path, mask_keys};

/// Error codes that mean that the upstream rejected the gateway, not the client. It rejected the gateway's key,
/// its balance, or (`not_found_error`) its name for the model. [`NO_SUCH_MODEL`] has the other words and
/// phrases about the model's name.
const GATEWAY_REJECTED: [&str; 24] = [
    "invalid_api_key",
    "api_key_invalid",
    "authentication",
    "authentication_error",
    "unauthenticated",
    "permission_error",
    "permission_denied",
    "account_deactivated",
    "access_terminated",
    "insufficient_quota",
    "insufficient_balance",
    "payment_required",
    "billing_error",
    "billing_not_active",
    "billing_hard_limit_reached",
    QUOTA_EXCEEDED,
    "not_found_error",
    "accessdeniedexception",
    "unrecognizedclientexception",
    "invalidsignatureexception",
    "incompletesignatureexception",
    "expiredtokenexception",
    "missingauthenticationtokenexception",
    "servicequotaexceededexception",
];

/// The error code of a quota that is used up. Only the status shows whether the quota is a rate limit.
const QUOTA_EXCEEDED: &str = "quota_exceeded";

/// Error codes that mean that the upstream is overloaded.
const OVERLOAD: [&str; 13] = [
    "rate_limit_exceeded",
    "rate_limit_error",
    "too_many_requests",
    "overloaded",
    "overloaded_error",
    "engine_overloaded",
    "server_overloaded",
    "resource_exhausted",
    "service_unavailable",
    "unavailable",
    "throttlingexception",
    "serviceunavailableexception",
    "modelnotreadyexception",
];

/// Error codes that mean that the model took too long.
const TIMEOUT: [&str; 3] = [
    "modeltimeoutexception",
    "gateway_timeout",
    "deadline_exceeded",
];

/// Error codes that mean that the request itself is wrong, besides [`POLICY`] and [`IMAGE`].
const REFUSED: [&str; 7] = [
    "invalid_request_error",
    "invalid_request",
    "invalid_argument",
    "bad_request",
    "badrequesterror",
    "invalid_prompt",
    "validationexception",
];

/// Error codes that mean that the content of the request is not allowed.
const POLICY: [&str; 6] = [
    "content_policy_violation",
    "content_filter",
    "bio_policy",
    "misalignment_policy_violation",
    "moderation_blocked",
    "image_content_policy_violation",
];

/// Error codes that mean that an image cannot be used.
const IMAGE: [&str; 12] = [
    "invalid_image",
    "invalid_image_format",
    "invalid_image_mode",
    "invalid_image_url",
    "invalid_base64_image",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
];

/// The member with the error's name, in bodies that contain it.
const ERROR_NAME: &str = "__type";

/// Longer messages are truncated in the log.
const LOG_CHARS_MAX: usize = 2_000;

pub(crate) fn read_failure(status: u16, body: &[u8], names: Names<'_>) -> Failure {
    let error_body = ErrorBody::read(body);
    let fault = match status {
        // With this status, the quota is one per minute or per day.
        429 if error_body.says_only(QUOTA_EXCEEDED) => RejectionCause::Overload,
        _ if error_body.rejects_gateway() => RejectionCause::Gateway,
        // Some upstreams reject content with the status of a bad credential.
        401..=404 if error_body.says_policy() => RejectionCause::Request(400),
        401..=404 | 407 | 421 => RejectionCause::Gateway,
        408 => RejectionCause::Timeout,
        // The model behind the upstream failed.
        424 => RejectionCause::Upstream,
        429 | 529 => RejectionCause::Overload,
        400..=498 if error_body.means(&CONTEXT_OVERFLOW) => RejectionCause::ContextOverflow(status),
        400..=498 => RejectionCause::Request(status),
        // Some servers report a context overflow as an internal error.
        500 if error_body.means(&CONTEXT_OVERFLOW) => RejectionCause::ContextOverflow(400),
        _ if error_body.says(&OVERLOAD) => RejectionCause::Overload,
        _ => RejectionCause::Upstream,
    };
    let cause = format!("status {status}: {}", error_body.for_log());
    error_body.into_failure(fault, names).because(cause)
}

/// Adds the error's name to its body. Some upstreams send the name only in a response header.
pub(crate) fn with_error_name(body: &[u8], name: &str) -> Vec<u8> {
    let mut members = match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    members.insert(ERROR_NAME.to_owned(), name.into());
    Value::Object(members).to_string().into_bytes()
}

/// Whether an error body says that the request's signing time differs too much from the upstream's clock.
pub(crate) fn blames_clock(body: &[u8]) -> bool {
    let message = ErrorBody::read(body).lower_message();
    let phrases = [
        "signature expired",
        "signature not yet current",
        "request time too skewed",
    ];
    phrases.iter().any(|phrase| message.contains(phrase))
}

/// Whether an error body says that the upstream rejected the gateway and not the client.
pub(crate) fn rejects_gateway(body: &[u8]) -> bool {
    ErrorBody::read(body).rejects_gateway()
}

/// Reads an error that was sent in place of an answer with status 200. `error` is the error object.
/// The upstream's name for the model is not known here, so the upstream's message is only logged.
pub(crate) fn read_event(error: &[u8], public_model: &str) -> Failure {
    let names = Names::of_model("", public_model);
    let error_body = ErrorBody::read(error);
    let fault = match error_body.status() {
        _ if error_body.rejects_gateway() => RejectionCause::Gateway,
        _ if error_body.says_policy() => RejectionCause::Request(400),
        Some(401..=404) => RejectionCause::Gateway,
        Some(429 | 503 | 529) => RejectionCause::Overload,
        _ if error_body.says(&OVERLOAD) => RejectionCause::Overload,
        Some(408 | 504) => RejectionCause::Timeout,
        _ if error_body.says(&TIMEOUT) => RejectionCause::Timeout,
        _ if error_body.means(&CONTEXT_OVERFLOW) => RejectionCause::ContextOverflow(400),
        Some(status @ (400 | 409..=498)) => RejectionCause::Request(status),
        None if error_body.blames_request() => RejectionCause::Request(400),
        _ => RejectionCause::Upstream,
    };
    let cause = format!("error in a 200: {}", error_body.for_log());
    // The client sees the kind of error, but not the upstream's message.
    let failure = match fault {
        RejectionCause::Request(status) => {
            Failure::upstream_rejected(status, error_body.generic_message())
        }
        other => ErrorBody::default().into_failure(other, names),
    };
    failure.because(cause)
}

/// Reads the `error` member of an answer with status 200, unless it says that there is no error.
pub(crate) fn read_member(error: Option<Raw<'_>>, public_model: &str) -> Option<Failure> {
    let error = error.filter(|error| is_error(*error))?;
    Some(read_event(error.text().as_bytes(), public_model))
}

/// Whether an `error` member is an error. Some upstreams send the member to say that there is no error.
pub(crate) fn is_error(value: Raw<'_>) -> bool {
    match value.shape() {
        Shape::Null => false,
        Shape::Boolean => value.boolean() == Some(true),
        Shape::String => !value.is_empty(),
        Shape::Number | Shape::Array | Shape::Object => true,
    }
}

#[derive(Clone, Copy)]
enum RejectionCause {
    /// The request was rejected with this status.
    Request(u16),
    /// The request was rejected with this status because it exceeds the model's context window.
    ContextOverflow(u16),
    /// The gateway's credential, balance or configuration is wrong.
    Gateway,
    Overload,
    Timeout,
    Upstream,
}

/// The parts of an error body that could be read.
#[derive(Default)]
struct ErrorBody {
    message: Option<String>,
    param: Option<String>,
    /// The words that classify the error: type, code, status, name, reason. In lower case.
    words: Vec<String>,
}

impl ErrorBody {
    fn read(body: &[u8]) -> Self {
        let Some(value) = parse(body) else {
            return Self::default();
        };
        let mut error = &value;
        if let Value::Array(items) = error {
            error = items.first().unwrap_or(&Value::Null);
        }
        error = match error.get("error") {
            Some(Value::Null) | None => error,
            Some(inner) => inner,
        };
        let text = |name: &str| error.get(name).and_then(Value::as_str);
        let message = error
            .as_str()
            .or_else(|| text("message"))
            .or_else(|| text("detail"));
        // If `error` is the message itself, the words that classify it are members next to it.
        let around = if error.is_string() { &value } else { error };
        let mut words = Vec::new();
        for name in ["type", "code", "status"] {
            words.extend(around.get(name).and_then(word));
        }
        words.extend(
            around
                .get(ERROR_NAME)
                .and_then(word)
                .as_deref()
                .map(bare_name),
        );
        let details = error.get("details").and_then(Value::as_array);
        for detail in details.into_iter().flatten() {
            words.extend(detail.get("reason").and_then(word));
        }
        Self {
            message: message.map(str::to_owned),
            param: text("param").map(str::to_owned),
            words,
        }
    }

    fn says(&self, known: &[&str]) -> bool {
        self.words.iter().any(|word| known.contains(&word.as_str()))
    }

    /// Whether this is the only word of the error that rejects the gateway.
    fn says_only(&self, known: &str) -> bool {
        let rejects = |word: &&String| GATEWAY_REJECTED.contains(&word.as_str());
        let mut rejections = self.words.iter().filter(rejects).peekable();
        rejections.peek().is_some()
            && rejections.all(|word| word == known)
            && !self.means(&NO_SUCH_MODEL)
    }

    /// Whether the upstream rejected the gateway and not the client.
    fn rejects_gateway(&self) -> bool {
        self.says(&GATEWAY_REJECTED) || self.means(&NO_SUCH_MODEL)
    }

    fn means(&self, patterns: &ErrorPatterns) -> bool {
        self.says(patterns.words) || patterns.are_in(&self.lower_message())
    }

    fn lower_message(&self) -> String {
        self.message
            .as_deref()
            .unwrap_or_default()
            .to_ascii_lowercase()
    }

    /// Whether the content of the request or of the answer is not allowed.
    fn says_policy(&self) -> bool {
        // As in `OutputImageSensitiveContentDetected.PolicyViolation`.
        let is_sensitive = |word: &String| word.contains("sensitivecontent");
        self.says(&POLICY) || self.words.iter().any(is_sensitive)
    }

    fn blames_request(&self) -> bool {
        self.says(&REFUSED) || self.says_policy() || self.says(&IMAGE)
    }

    /// The HTTP status, if one of the words is a number.
    fn status(&self) -> Option<u16> {
        let mut numbers = self.words.iter().filter_map(|word| word.parse().ok());
        numbers.find(|status| (400..600).contains(status))
    }

    /// The whole error, for the log only.
    fn for_log(&self) -> String {
        let message = self.message.as_deref().unwrap_or("no message");
        let shown = message.chars().take(LOG_CHARS_MAX).collect::<String>();
        format!("{} [{}]", mask_keys(&shown), self.words.join(" "))
    }

    /// The message for the client if the upstream's own text cannot be shown.
    fn generic_message(&self) -> &'static str {
        let lower = self.lower_message();
        let says = |words: &[&str], phrases: &[&str]| {
            self.says(words) || phrases.iter().any(|phrase| lower.contains(phrase))
        };
        if says(
            &[],
            &["content policy", "safety", "sensitive", "moderation"],
        ) || self.says_policy()
        {
            "The model's content policy refused this request."
        } else if says(&IMAGE, &["image"]) {
            "The model could not use an image of this request. Check its format, size and encoding."
        } else {
            "The model's upstream refused this request."
        }
    }

    fn into_failure(self, fault: RejectionCause, names: Names<'_>) -> Failure {
        match fault {
            RejectionCause::Request(status) | RejectionCause::ContextOverflow(status) => {
                let explained = self
                    .message
                    .as_deref()
                    .and_then(|text| explain(text, names));
                let failure = match (fault, explained) {
                    (RejectionCause::ContextOverflow(_), explained) => {
                        Failure::context_length_exceeded(status, explained)
                    }
                    (_, Some(explained)) => Failure::upstream_rejected(status, explained),
                    (_, None) => Failure::upstream_rejected(status, self.generic_message()),
                };
                let param = self.param.as_deref();
                match param.and_then(|path| explain_path(path, names)) {
                    Some(param) => failure.param(param),
                    None => failure,
                }
            }
            RejectionCause::Gateway | RejectionCause::Upstream => Failure::upstream_error(),
            RejectionCause::Overload => Failure::upstream_overloaded(),
            RejectionCause::Timeout => Failure::upstream_timeout(),
        }
    }
}

/// Parses the body as JSON, or the data in it if it is a server-sent event.
fn parse(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok().or_else(|| {
        let mut lines = body.split(|byte| matches!(byte, b'\n' | b'\r'));
        let data = lines.find_map(|line| line.strip_prefix(b"data:"))?;
        serde_json::from_slice(data).ok()
    })
}

/// The error's name without a namespace before `#` or an address after `:`.
fn bare_name(word: &str) -> String {
    let name = word.split(':').next().unwrap_or_default();
    name.rsplit('#').next().unwrap_or_default().to_owned()
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(word) => Some(word.to_ascii_lowercase()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
