//! One small call through a channel, for its operator. Nobody is charged for it, and the journal does not show it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::{Dialect, Kind};
use serde_json::json;
use upstream::{CallOutcome, Channel, Endpoint, Protocol, UpstreamRequest};

use crate::call::attempt::Attempt;
use crate::catalog::Catalog;
use crate::engine::Engine;

/// How long the upstream may take.
const PROBED_WITHIN: Duration = Duration::from_secs(30);
/// As much of an error's text is shown.
const TEXT_CHARS_MAX: usize = 500;
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// How a probe went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOutcome {
    pub is_ok: bool,
    /// The status of the upstream's answer, if there was one.
    pub status: Option<u16>,
    /// A sentence for the operator, which may repeat the upstream's words.
    pub message: String,
    pub total: Duration,
}

impl Engine {
    /// Sends one small call through a channel. `None` if there is no such channel. The breaker of the channel learns
    /// of it as of any call.
    pub async fn probe_channel(&self, name: &str) -> Option<ProbeOutcome> {
        let catalog = self.catalog();
        let channel = catalog.channel(name)?;
        let Some(call) = small_call(&catalog, channel) else {
            return Some(ProbeOutcome {
                is_ok: false,
                status: None,
                message: "No text or embedding model has a route to this channel, so there is no small call to make."
                    .to_owned(),
                total: Duration::ZERO,
            });
        };
        Some(send(channel, &call).await)
    }
}

/// A small call to some model of the channel.
fn small_call(catalog: &Catalog, channel: &Channel) -> Option<UpstreamRequest> {
    for model in catalog.all() {
        for route in &model.routes {
            if route.channel.name() != channel.name() {
                continue;
            }
            let upstream_model = Arc::clone(&route.model);
            let call = smallest(channel, model.kind, route.dialect, upstream_model);
            if call.is_some() {
                return call;
            }
        }
    }
    None
}

/// The smallest call of a model, if its kind has a small one.
fn smallest(
    channel: &Channel,
    kind: Kind,
    pinned: Option<Dialect>,
    model: Arc<str>,
) -> Option<UpstreamRequest> {
    let (endpoint, body) = match kind {
        Kind::Text => {
            let dialect = channel.text_dialect_for(Dialect::Chat, pinned)?;
            let body = match dialect {
                Dialect::Chat => {
                    json!({ "model": &*model, "messages": [{ "role": "user", "content": "ping" }] })
                }
                Dialect::Responses => json!({ "model": &*model, "input": "ping", "store": false }),
                Dialect::Messages => {
                    json!({ "model": &*model, "max_tokens": 16, "messages": [{ "role": "user", "content": "ping" }] })
                }
                Dialect::Generate => {
                    json!({ "contents": [{ "role": "user", "parts": [{ "text": "ping" }] }] })
                }
                Dialect::Interactions => {
                    json!({ "model": &*model, "input": "ping", "store": false })
                }
            };
            let stream = false;
            (Endpoint::Text { dialect, stream }, body)
        }
        Kind::Embedding if channel.speaks(Protocol::Embeddings) => (
            Endpoint::Embeddings,
            json!({ "model": &*model, "input": "ping" }),
        ),
        _ => return None,
    };
    let body = vec![Bytes::from(body.to_string())];
    Some(UpstreamRequest::json(endpoint, model, body))
}

async fn send(channel: &Channel, call: &UpstreamRequest) -> ProbeOutcome {
    let start = Instant::now();
    let mut attempt = Attempt::on(channel);
    let exchange = async {
        let incoming = channel.send(call).await?;
        let (status, retry_after) = (incoming.status, incoming.retry_after);
        let body = incoming.body.collect(ANSWER_BYTES_MAX).await?;
        Ok::<_, upstream::CallError>((status, retry_after, body))
    };
    let answered = tokio::time::timeout(PROBED_WITHIN, exchange).await;
    let total = start.elapsed();
    let (is_ok, status, message) = match answered {
        Ok(Ok((status, retry_after, body))) => {
            attempt.report(CallOutcome::of_status(status, retry_after));
            let is_ok = (200..300).contains(&status);
            let message = if is_ok {
                "The upstream answered.".to_owned()
            } else {
                let text = channel.without_credential(&String::from_utf8_lossy(&body));
                let text: String = text
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(TEXT_CHARS_MAX)
                    .collect();
                format!("The upstream answered with status {status}: {text}")
            };
            (is_ok, Some(status), message)
        }
        Ok(Err(error)) => {
            attempt.report(CallOutcome::Failed);
            (false, None, format!("The call failed: {error}."))
        }
        Err(_) => {
            attempt.report(CallOutcome::Failed);
            let seconds = PROBED_WITHIN.as_secs();
            (false, None, format!("No answer within {seconds} seconds."))
        }
    };
    ProbeOutcome {
        is_ok,
        status,
        message,
        total,
    }
}
