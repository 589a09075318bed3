//! Writes, signs and sends webhook requests.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderName, HeaderValue};
use ledger::UnixMs;
use serde::Serialize;
use sha2::Sha256;
use store::{AlertEvent, AlertRow, DeliveryRow, Webhook};
use upstream::{CallError, CallErrorKind, ExternalUrl, FetchError, Guarded, Post, Timeouts};

use crate::{clock, ids};

/// The time limit of an attempt, from the DNS lookup to the head of the response.
pub(super) const ATTEMPT_WITHIN: Duration = Duration::from_secs(10);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const SIGNATURE: HeaderName = HeaderName::from_static("tollgate-signature");

/// Why a delivery to a webhook failed.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error(transparent)]
    Fetch(FetchError),
    #[error("there was no answer within 10 seconds")]
    TimedOut,
}

impl From<FetchError> for WebhookError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Call(CallError {
                kind: CallErrorKind::Timeout(_),
                ..
            }) => Self::TimedOut,
            error => Self::Fetch(error),
        }
    }
}

#[derive(Debug, Serialize)]
struct Message<'a> {
    /// The same for every attempt, so that a receiver can ignore duplicates.
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    alert: AlertBody<'a>,
}

#[derive(Debug, Serialize)]
struct AlertBody<'a> {
    id: String,
    kind: &'a str,
    subject: Option<&'a str>,
    wallet: Option<String>,
    message: &'a str,
    at: i64,
    ended_at: Option<i64>,
}

/// The id and the body of a delivery. Both are the same for every attempt.
pub(super) fn message(row: &DeliveryRow) -> (String, Bytes) {
    let alert = &row.alert;
    let id = format!("{}.{}", alert.id, row.event.as_str());
    let (kind, ended_at) = match row.event {
        AlertEvent::Begin => ("alert.begin", None),
        AlertEvent::End => ("alert.end", alert.ended_at),
    };
    let body = encode(&Message {
        id: &id,
        kind,
        alert: body_of(alert, ended_at),
    });
    (id, body)
}

fn body_of(alert: &AlertRow, ended_at: Option<UnixMs>) -> AlertBody<'_> {
    AlertBody {
        id: alert.id.to_string(),
        kind: alert.kind.as_str(),
        subject: alert.subject.as_deref(),
        wallet: alert.wallet.map(|wallet| wallet.to_string()),
        message: &alert.message,
        at: alert.at.get(),
        ended_at: ended_at.map(UnixMs::get),
    }
}

fn encode(message: &Message<'_>) -> Bytes {
    // Texts and numbers can always be serialised, so this does not fail.
    serde_json::to_vec(message).unwrap_or_default().into()
}

/// Checks the address of a webhook. A name that cannot be resolved now is accepted.
pub async fn check_webhook(guarded: &Guarded, url: &str) -> Result<(), FetchError> {
    let checked = guarded.check(url, Timeouts::default()).await;
    match checked {
        Err(FetchError::Refused(refusal)) => Err(refusal.into()),
        _ => ExternalUrl::parse(url).map(drop).map_err(FetchError::from),
    }
}

/// Sends a message that is marked as a test.
pub async fn send_test(guarded: &Guarded, webhook: &Webhook) -> Result<(), WebhookError> {
    let id: String = ids::fresh("test_");
    let body = encode(&Message {
        id: &id,
        kind: "alert.test",
        alert: AlertBody {
            id: id.clone(),
            kind: "test",
            subject: None,
            wallet: None,
            message: "This is a test of the webhook. Nothing is wrong.",
            at: clock::now().get(),
            ended_at: None,
        },
    });
    send(guarded, webhook, &id, body).await
}

/// Sends a message. The signature includes the time of the attempt. Redirects are not followed.
pub(super) async fn send(
    guarded: &Guarded,
    webhook: &Webhook,
    id: &str,
    body: Bytes,
) -> Result<(), WebhookError> {
    let seconds = clock::now().get() / 1_000;
    let signature = signature(&webhook.secret, seconds, &body);
    let mut headers = HeaderMap::new();
    for (name, value) in [(IDEMPOTENCY_KEY, id), (SIGNATURE, &signature)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    let post = Post {
        url: &webhook.url,
        content_type: HeaderValue::from_static("application/json"),
        headers: &headers,
        body,
        within: ATTEMPT_WITHIN,
    };
    match guarded.post(&post).await? {
        200..300 => Ok(()),
        status => Err(FetchError::Status(status).into()),
    }
}

/// The signature header: `t=<seconds>,v1=<HMAC-SHA256 of "<seconds>.<body>" in hexadecimal
/// digits>`.
fn signature(secret: &str, seconds: i64, body: &[u8]) -> String {
    let mut header = format!("t={seconds},v1=");
    // An HMAC accepts keys of any length, so this does not fail.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) {
        mac.update(seconds.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        for byte in mac.finalize().into_bytes() {
            // Writing into a String cannot fail.
            let _ = write!(header, "{byte:02x}");
        }
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_covers_the_time_and_the_body() {
        // Computed by `printf '1800000000.{"a":1}' | openssl dgst -sha256 -hmac whsec_x`.
        let signed = signature("whsec_x", 1_800_000_000, br#"{"a":1}"#);
        assert_eq!(signed, format!("t=1800000000,v1={EXPECTED}"));
        for other in [
            signature("whsec_y", 1_800_000_000, br#"{"a":1}"#),
            signature("whsec_x", 1_800_000_001, br#"{"a":1}"#),
            signature("whsec_x", 1_800_000_000, br#"{"a":2}"#),
        ] {
            assert!(!other.ends_with(EXPECTED));
        }
    }

    const EXPECTED: &str = "f20d18d08da09ed70c7d90a4cc6242e6c8fd59c4145ce0c03a09fb20e01ef470";
}
