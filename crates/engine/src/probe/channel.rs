//! Sends one small call through a channel, for its operator. No wallet pays for the call, and it leaves no journal row.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::canon::Dropped;
use protocol::messages::converse;
use protocol::{Dialect, Kind};
use serde_json::json;
use upstream::{Channel, Endpoint, Protocol, UpstreamRequest};

use super::ask::{AskError, ask};
use crate::catalog::Catalog;
use crate::engine::Engine;

const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOutcome {
    pub is_ok: bool,
    /// The status of the upstream's answer, if there was one.
    pub status: Option<u16>,
    /// A sentence for the operator. It may quote the upstream.
    pub message: String,
    pub total: Duration,
}

impl Engine {
    /// Sends one small call through a channel. `None` if there is no such channel. Like any call, it is reported to the
    /// channel's breaker.
    pub async fn probe_channel(&self, name: &str) -> Option<ProbeOutcome> {
        let catalog = self.catalog();
        let channel = catalog.channel(name)?;
        let Some(call) = small_call(&catalog, channel) else {
            let message = "No text or embedding model has a route to this channel, so there is no small call to make.";
            return Some(ProbeOutcome::not_made(message));
        };
        Some(send(channel, &call).await)
    }

    /// Sends one small call for a model through a channel that is not configured yet.
    pub async fn try_channel(
        &self,
        proposed: &Channel,
        kind: Kind,
        pinned: Option<Dialect>,
        model: &str,
    ) -> ProbeOutcome {
        match smallest(proposed, kind, pinned, model.into()) {
            Some(call) => send(proposed, &call).await,
            None => ProbeOutcome::not_made(
                "This channel has no small call for models of this kind. Save it and use the playground.",
            ),
        }
    }
}

impl ProbeOutcome {
    fn not_made(message: &str) -> Self {
        Self {
            is_ok: false,
            status: None,
            message: message.to_owned(),
            total: Duration::ZERO,
        }
    }
}

/// A small call to one of the channel's models.
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

/// The smallest call of a model, if a model of its kind can be called cheaply.
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
            (channel.text_endpoint(dialect, false), body)
        }
        Kind::Embedding if channel.speaks(Protocol::Embeddings) => (
            Endpoint::Embeddings,
            json!({ "model": &*model, "input": "ping" }),
        ),
        _ => return None,
    };
    let mut body = body.to_string().into_bytes();
    if let Endpoint::Converse { .. } = endpoint {
        body = converse::rewrite_request(&body, &[], &mut Dropped::new(Dialect::Messages)).ok()?;
    }
    let body = vec![Bytes::from(body)];
    Some(UpstreamRequest::json(endpoint, model, body))
}

async fn send(channel: &Channel, call: &UpstreamRequest) -> ProbeOutcome {
    let answered = ask(channel, call, ANSWER_BYTES_MAX).await;
    match answered.outcome {
        Ok((status, _)) => ProbeOutcome {
            is_ok: true,
            status: Some(status),
            message: "The upstream answered.".to_owned(),
            total: answered.total,
        },
        Err(AskError { status, message }) => ProbeOutcome {
            is_ok: false,
            status,
            message,
            total: answered.total,
        },
    }
}
