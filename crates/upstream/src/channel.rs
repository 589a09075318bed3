//! One upstream account: its settings, its connections, its health.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use protocol::Dialect;

use crate::address::Address;
use crate::breaker::{Breaker, Outcome, State};
use crate::call::{Incoming, Outgoing};
use crate::error::{CallError, ChannelError, Sent, What};
use crate::preset::{Preset, Protocol};
use crate::secret::Secret;
use crate::timeouts::Timeouts;

/// The settings of a channel, as an operator writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSpec {
    pub name: String,
    pub preset: Preset,
    /// The preset's own when absent.
    pub base_url: Option<String>,
    pub credential: Option<Secret>,
    /// The preset's own when absent.
    pub protocols: Option<Vec<Protocol>>,
    /// The upstream can reach addresses that callers must not reach through it.
    pub private_network: bool,
}

/// One upstream account. A clone is the same account: connections and health are shared.
#[derive(Clone, Debug)]
pub struct Channel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: ChannelSpec,
    timeouts: Timeouts,
    protocols: Vec<Protocol>,
    address: Address,
    breaker: Mutex<Breaker>,
}

impl Channel {
    /// Checks the settings; no connection is made before the first call.
    pub fn new(spec: ChannelSpec, timeouts: Timeouts) -> Result<Self, ChannelError> {
        let base_url = spec.base_url.as_deref().or(spec.preset.base_url());
        let address = Address::parse(base_url.ok_or(ChannelError::NoBaseUrl)?)?;
        if spec.credential.as_ref().is_some_and(Secret::is_empty) {
            return Err(ChannelError::EmptyCredential);
        }
        let protocols = match &spec.protocols {
            Some(protocols) if protocols.is_empty() => return Err(ChannelError::NoProtocols),
            Some(protocols) => protocols.clone(),
            None => spec.preset.protocols().to_vec(),
        };
        Ok(Self(Arc::new(Inner {
            timeouts,
            protocols,
            address,
            breaker: Mutex::new(Breaker::new()),
            spec,
        })))
    }

    /// The name in the configuration.
    pub fn name(&self) -> &str {
        &self.0.spec.name
    }

    /// The settings it was made from; on a reload an equal channel is kept.
    pub fn spec(&self) -> &ChannelSpec {
        &self.0.spec
    }

    /// The deadlines of its calls.
    pub fn timeouts(&self) -> Timeouts {
        self.0.timeouts
    }

    /// What it speaks, in the order of the configuration.
    pub fn protocols(&self) -> &[Protocol] {
        &self.0.protocols
    }

    /// Whether it speaks this protocol.
    pub fn speaks(&self, protocol: Protocol) -> bool {
        self.0.protocols.contains(&protocol)
    }

    /// The dialect in which a call of dialect `client` goes out: the pinned one of the
    /// route, else the client's own, else the first text protocol of the channel. None
    /// when the channel does not speak the pinned one, or no text at all.
    pub fn text_dialect_for(&self, client: Dialect, pinned: Option<Dialect>) -> Option<Dialect> {
        if let Some(pinned) = pinned {
            return self.speaks(pinned.into()).then_some(pinned);
        }
        if self.speaks(client.into()) {
            return Some(client);
        }
        self.0.protocols.iter().find_map(|it| it.dialect())
    }

    /// Sends a call and gives its answer as soon as its head has come.
    pub async fn send(&self, call: Outgoing<'_>) -> Result<Incoming, CallError> {
        drop(call);
        std::future::ready(Err(CallError::new(Sent::No, What::Connect))).await
    }

    /// How it stands at `now`.
    pub fn state(&self, now: Instant) -> State {
        self.0.breaker.lock().state(now)
    }

    /// Whether its models can be listed: a credential is there where one is needed, and
    /// it was not refused, or it is time to see whether it still is. Trouble of other
    /// kinds does not unlist a model.
    pub fn is_live(&self, now: Instant) -> bool {
        let bare = self.0.spec.credential.is_none() && self.0.spec.preset.needs_credential();
        !bare && !matches!(self.state(now), State::TakenOut { .. })
    }

    /// Tells how a call ended, at `now`.
    pub fn report(&self, outcome: Outcome, now: Instant) {
        self.0.breaker.lock().report(outcome, now);
    }
}
