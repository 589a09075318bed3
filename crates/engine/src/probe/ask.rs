//! Sends one request to an upstream and describes the answer for an operator.

use std::error::Error as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use upstream::{CallError, CallOutcome, Channel, UpstreamRequest, UrlRefusal};

use crate::call::attempt::Attempt;

/// How long the upstream may take.
pub(super) const ANSWERED_WITHIN: Duration = Duration::from_secs(30);
/// The maximum number of characters of an error text that are shown.
const TEXT_CHARS_MAX: usize = 500;

pub(super) struct TimedAnswer {
    /// Status and body of a successful answer.
    pub(super) outcome: Result<(u16, Bytes), AskError>,
    pub(super) total: Duration,
}

pub(super) struct AskError {
    /// The status of the upstream's answer, if there was one.
    pub(super) status: Option<u16>,
    /// A sentence for the operator. It may quote the upstream.
    pub(super) message: String,
}

/// Sends a request and reads the whole answer. Like any call, it is reported to the channel's breaker.
pub(super) async fn ask(
    channel: &Channel,
    call: &UpstreamRequest,
    bytes_max: usize,
) -> TimedAnswer {
    let start = Instant::now();
    let mut attempt = Attempt::on(channel);
    let exchange = async {
        let incoming = channel.send(call).await?;
        let (status, retry_after) = (incoming.status, incoming.retry_after);
        let body = incoming.body.collect(bytes_max).await?;
        Ok::<_, CallError>((status, retry_after, body))
    };
    let answered = tokio::time::timeout(ANSWERED_WITHIN, exchange).await;
    let total = start.elapsed();
    let outcome = match answered {
        Ok(Ok((status, retry_after, body))) => {
            attempt.report(CallOutcome::of_status(status, retry_after));
            if (200..300).contains(&status) {
                Ok((status, body))
            } else {
                let text = channel.without_credential(&String::from_utf8_lossy(&body));
                let text = shown(&text);
                Err(AskError {
                    status: Some(status),
                    message: format!("The upstream answered with status {status}: {text}"),
                })
            }
        }
        Ok(Err(error)) => {
            attempt.report(CallOutcome::Failed);
            Err(AskError {
                status: None,
                message: describe_error(&error),
            })
        }
        Err(_) => {
            attempt.report(CallOutcome::Failed);
            let seconds = ANSWERED_WITHIN.as_secs();
            Err(AskError {
                status: None,
                message: format!("No answer within {seconds} seconds."),
            })
        }
    };
    TimedAnswer { outcome, total }
}

/// Describes an error and its cause, so that an operator can see whether a name, a certificate or a port is at fault.
fn describe_error(error: &CallError) -> String {
    if UrlRefusal::cause_of(error) == Some(UrlRefusal::Loop) {
        return "The address is that of this gateway, so it was not called: the channel would call itself.".to_owned();
    }
    if UrlRefusal::cause_of(error).is_some() {
        return "The address is not public, so it was not called. If it is an upstream of yours, allow its network with `outbound.allow`, or write the channel into the configuration file.".to_owned();
    }
    match error.source() {
        Some(source) => shown(&format!("The call failed: {error} ({source}).")),
        None => format!("The call failed: {error}."),
    }
}

fn shown(text: &str) -> String {
    let text = text.chars().filter(|c| !c.is_control());
    text.take(TEXT_CHARS_MAX).collect()
}
