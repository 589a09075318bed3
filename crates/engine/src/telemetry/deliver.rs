//! Delivers one batch to the collector and retries as OTLP requires.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use upstream::{CallError, OperatorEndpoint, PostAnswer};

use crate::metrics::telemetry_counts::DropReason;
use crate::task::backoff::jittered;

/// The time limit of an attempt, from the DNS lookup to the last byte of the answer.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(10);
/// The pauses between attempts. If the attempt after the last pause fails, the batch is dropped.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];
/// The longest pause that a collector can ask for.
const PAUSE_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undelivered {
    pub(super) reason: DropReason,
    pub(super) error: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The collector has accepted the batch, except for this many items.
    Taken { rejected: u64 },
    /// The collector may accept the same batch later.
    Busy {
        after: Option<Duration>,
        error: String,
    },
    /// The collector will never accept this batch.
    Refused(String),
}

/// Delivers a document. Returns how many of its items the collector rejected. After `stop`, at most one more attempt
/// starts.
pub(super) async fn deliver(
    endpoint: &OperatorEndpoint,
    headers: &HeaderMap,
    path: &str,
    body: Bytes,
    stop: &CancellationToken,
) -> Result<u64, Undelivered> {
    let json = HeaderValue::from_static("application/json");
    let mut pauses = PAUSES.into_iter();
    loop {
        let posted = endpoint.post(path, &json, headers, body.clone(), ATTEMPT_WITHIN);
        let (after, error) = match judge(posted.await) {
            Outcome::Taken { rejected } => return Ok(rejected),
            Outcome::Refused(error) => {
                let reason = DropReason::Refused;
                return Err(Undelivered { reason, error });
            }
            Outcome::Busy { after, error } => (after, error),
        };
        let Some(pause) = pauses.next().filter(|_| !stop.is_cancelled()) else {
            let reason = DropReason::Unreachable;
            return Err(Undelivered { reason, error });
        };
        let pause = after.map_or(jittered(pause), |after| after.min(PAUSE_MAX));
        // A stopping node makes one more attempt immediately.
        let _ = tokio::time::timeout(pause, stop.cancelled()).await;
    }
}

fn judge(posted: Result<PostAnswer, CallError>) -> Outcome {
    let answer = match posted {
        Ok(answer) => answer,
        Err(error) => {
            return Outcome::Busy {
                after: None,
                error: error.to_string(),
            };
        }
    };
    let error = || format!("the answer has the status {}", answer.status);
    match answer.status {
        200..300 => Outcome::Taken {
            rejected: rejected(&answer.body),
        },
        429 | 502 | 503 | 504 => Outcome::Busy {
            after: answer.retry_after,
            error: error(),
        },
        _ => Outcome::Refused(error()),
    }
}

/// The members of the collector's answer that we read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportAnswer {
    partial_success: Option<PartialSuccess>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialSuccess {
    #[serde(alias = "rejectedDataPoints")]
    rejected_spans: Option<Count>,
}

/// A 64-bit number. The specification requires a string, but also permits a number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Count {
    Number(u64),
    Text(String),
}

/// The number of items that the collector rejected. An unreadable answer counts as zero.
fn rejected(body: &[u8]) -> u64 {
    let answer: Option<ExportAnswer> = serde_json::from_slice(body).ok();
    let part = answer.and_then(|answer| answer.partial_success);
    match part.and_then(|part| part.rejected_spans) {
        Some(Count::Number(count)) => count,
        Some(Count::Text(text)) => text.parse().unwrap_or(0),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &'static str, retry_after: Option<u64>) -> Outcome {
        judge(Ok(PostAnswer {
            status,
            retry_after: retry_after.map(Duration::from_secs),
            body: Bytes::from_static(body.as_bytes()),
        }))
    }

    #[test]
    fn the_page_about_telemetry_states_the_schedule() {
        let page = include_str!("../../../../docs/telemetry.md");
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let seconds: Vec<_> = PAUSES.iter().map(Duration::as_secs).collect();
        let [first, second, third, fourth, last] = seconds[..] else {
            panic!("{seconds:?}");
        };
        let pauses = format!("are {first}, {second}, {third}, {fourth} and {last} seconds");
        let longest = (ATTEMPT_WITHIN * 6 + PAUSE_MAX * 5).as_secs();
        assert_eq!((seconds.len() + 1, longest), (6, 210));
        assert_eq!((ATTEMPT_WITHIN.as_secs(), PAUSE_MAX.as_secs()), (10, 30));
        for sentence in [
            pauses.as_str(),
            "within ten seconds",
            "at each of six attempts",
            "of 30 seconds at most",
            "after three and a half minutes at the latest",
        ] {
            assert!(page.contains(sentence), "the page does not say: {sentence}");
        }
    }

    #[test]
    fn only_the_statuses_that_otlp_names_are_tried_again() {
        for status in [400, 401, 403, 404, 408, 413, 500, 501, 505, 301] {
            assert!(
                matches!(answer(status, "", None), Outcome::Refused(_)),
                "{status}"
            );
        }
        for status in [429, 502, 503, 504] {
            let outcome = answer(status, "", Some(7));
            let Outcome::Busy { after, .. } = outcome else {
                panic!("{status}");
            };
            assert_eq!(after, Some(Duration::from_secs(7)));
        }
    }

    #[test]
    fn what_a_collector_rejects_is_counted_however_it_is_written() {
        for (body, rejected) in [
            ("", 0),
            ("{}", 0),
            ("not json", 0),
            (r#"{"partialSuccess":null}"#, 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (
                r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#,
                3,
            ),
            (r#"{"partialSuccess":{"rejectedSpans":4}}"#, 4),
            (r#"{"partialSuccess":{"rejectedDataPoints":"5"}}"#, 5),
            (r#"{"partialSuccess":{"rejectedSpans":"-1"}}"#, 0),
        ] {
            assert_eq!(
                answer(200, body, None),
                Outcome::Taken { rejected },
                "{body}"
            );
        }
    }
}
