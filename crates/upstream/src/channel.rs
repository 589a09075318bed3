//! One upstream account: its settings, its connections, its health.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use protocol::Dialect;
use tokio::runtime::Handle;
use tokio::time::Instant as Clock;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::address::Address;
use crate::breaker::{BreakerState, CallOutcome};
use crate::error::{CallError, ChannelError, TimeoutStage};
use crate::head_template::HeadTemplate;
use crate::health::Health;
use crate::history::MinuteOfCalls;
use crate::pool::Pool;
use crate::preset::{Preset, Protocol};
use crate::request::UpstreamRequest;
use crate::response::{Body, UpstreamResponse};
use crate::secret::Secret;
use crate::socket::{HANDSHAKE, Handshake, SocketRequest, tunnel};
use crate::timeouts::Timeouts;
use crate::wire::{Connection, Connector};

/// The settings of a channel, as an operator writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSpec {
    pub name: String,
    pub preset: Preset,
    /// The preset's default when absent.
    pub base_url: Option<String>,
    pub credential: Option<Secret>,
    /// The preset's default when absent.
    pub protocols: Option<Vec<Protocol>>,
    /// Whether the upstream can reach private addresses that callers must not reach through it.
    pub private_network: bool,
    /// Whether the upstream never exceeds the output limit of a request. When absent, only a
    /// vendor's own endpoint is trusted to keep it.
    pub keeps_output_limit: Option<bool>,
    /// How long the upstream is read for its usage report after the client has gone; the node's
    /// value when absent.
    pub client_gone_drain: Option<Duration>,
    /// Whether the upstream can count the tokens of requests; the preset's default when absent.
    pub counts_tokens: Option<bool>,
}

/// Host name labels that do not identify an owner.
const COMMON_LABELS: [&str; 8] = ["ai", "api", "cloud", "co", "com", "dev", "io", "www"];

/// Words that identify the upstream: the channel's name, its host, and the labels of the host.
fn identity(name: &str, host: &str) -> Box<[Box<str>]> {
    let host = host.to_ascii_lowercase();
    let labels = host
        .split(['.', '-'])
        .filter(|label| label.len() > 1 && !COMMON_LABELS.contains(label))
        .filter(|label| !label.bytes().all(|byte| byte.is_ascii_digit()));
    let mut words: Vec<Box<str>> = labels.map(Into::into).collect();
    words.push(name.to_ascii_lowercase().into());
    words.push(host.as_str().into());
    words.into()
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
    template: HeadTemplate,
    /// Words that identify the upstream.
    identity: Box<[Box<str>]>,
    connector: Connector,
    pool: Arc<Pool<Box<Connection>>>,
    health: Health,
}

impl Channel {
    /// Checks the settings. The first call opens the first connection.
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
            template: HeadTemplate::new(spec.preset, &address, spec.credential.as_ref())?,
            identity: identity(&spec.name, &address.host),
            connector: Connector::new(&address)?,
            address,
            pool: Arc::new(Pool::new()),
            health: Health::default(),
            spec,
        })))
    }

    /// The name in the configuration.
    pub fn name(&self) -> &str {
        &self.0.spec.name
    }

    /// Lower-case words that identify the upstream and must never reach a client.
    pub fn identity(&self) -> &[Box<str>] {
        &self.0.identity
    }

    /// The settings it was made from. A reload keeps a channel whose settings did not change.
    pub fn spec(&self) -> &ChannelSpec {
        &self.0.spec
    }

    /// The deadlines of its calls.
    pub fn timeouts(&self) -> Timeouts {
        self.0.timeouts
    }

    /// The protocols it speaks, in the order of the configuration.
    pub fn protocols(&self) -> &[Protocol] {
        &self.0.protocols
    }

    /// Whether it speaks this protocol.
    pub fn speaks(&self, protocol: Protocol) -> bool {
        self.0.protocols.contains(&protocol)
    }

    /// Whether the upstream never exceeds the output limit of a request.
    pub fn keeps_output_limit(&self) -> bool {
        let spec = self.spec();
        spec.keeps_output_limit
            .unwrap_or_else(|| spec.preset.keeps_output_limit(spec.base_url.as_deref()))
    }

    /// Whether the upstream has an endpoint that counts the tokens of requests in this dialect.
    pub fn counts_tokens(&self, dialect: Dialect) -> bool {
        let has_one = matches!(
            dialect,
            Dialect::Responses | Dialect::Messages | Dialect::Generate
        );
        let spec = self.spec();
        let counts = spec.counts_tokens;
        has_one && self.speaks(dialect.into()) && counts.unwrap_or(spec.preset.counts_tokens())
    }

    /// How long the upstream is read for its usage report after the client has gone, if the channel
    /// sets it.
    pub fn client_gone_drain(&self) -> Option<Duration> {
        self.spec().client_gone_drain
    }

    /// The dialect in which a call of dialect `client` is sent: the one pinned by the route,
    /// otherwise the client's own, otherwise the first text protocol of the channel. `None` if the
    /// channel does not speak the pinned dialect, or no text dialect at all.
    pub fn text_dialect_for(&self, client: Dialect, pinned: Option<Dialect>) -> Option<Dialect> {
        if let Some(pinned) = pinned {
            return self.speaks(pinned.into()).then_some(pinned);
        }
        if self.speaks(client.into()) {
            return Some(client);
        }
        self.0.protocols.iter().find_map(|it| it.dialect())
    }

    /// Sends a request and returns the response as soon as its head has arrived.
    ///
    /// If an idle connection turns out to be closed, another one is used, as long as no byte of the
    /// request was written to it. The caller must [`report`](Self::report) how the call ended.
    pub async fn send(&self, call: &UpstreamRequest) -> Result<UpstreamResponse, CallError> {
        let start = Clock::now();
        let total = start + self.0.timeouts.total;
        self.0.health.attempt(start.into_std());
        let runtime = Handle::current().id();
        while let Some(conn) = self.0.pool.take(runtime, start) {
            match self.exchange(conn, call, start, total).await {
                Err(error) if error.is_stale() => {}
                result => return result,
            }
        }
        let deadline = (start + self.0.timeouts.connect).min(total);
        // Boxed because its state is large and few calls need a new connection.
        let stream = Box::pin(self.0.connector.connect(deadline)).await?;
        let connected = Clock::now();
        let conn = Box::new(Connection::new(
            stream,
            connected + self.0.timeouts.first_byte,
        ));
        self.exchange(conn, call, connected, total).await
    }

    /// Opens a session on a connection of its own, or returns the response that refuses it.
    pub async fn open_socket(&self, ask: SocketRequest<'_>) -> Result<Handshake, CallError> {
        let start = Clock::now();
        self.0.health.attempt(start.into_std());
        let stream = self
            .0
            .connector
            .connect(start + self.0.timeouts.connect)
            .await?;
        let deadline = Clock::now() + HANDSHAKE;
        let mut conn = Box::new(Connection::new(stream, deadline));
        let key = generate_key();
        let write = |head: &mut Vec<u8>| self.0.template.write_handshake(ask, &key, head);
        conn.begin(write, &[], None);
        let head = conn.answer(deadline, TimeoutStage::FirstByte).await?;
        match &head.accept {
            Some(accept) if *accept == derive_accept_key(key.as_bytes()) => {
                let (stream, read) = conn.into_parts();
                let socket = tunnel(stream, read, ask.message_bytes_max).await;
                Ok(Handshake::Open(Box::new(socket)))
            }
            Some(_) => Err(CallError::broken(
                "sec-websocket-accept does not match the key",
            )),
            None => Ok(Handshake::Refused(UpstreamResponse {
                status: head.status,
                content_type: head.content_type,
                retry_after: head.retry_after.map(|it| it.wait(SystemTime::now)),
                body: Body::new(conn, head.framing, self.0.timeouts.idle, deadline),
            })),
        }
    }

    /// Sends a request and reads the head of the response on one connection.
    async fn exchange(
        &self,
        mut conn: Box<Connection>,
        call: &UpstreamRequest,
        start: Clock,
        total: Clock,
    ) -> Result<UpstreamResponse, CallError> {
        let write = |head: &mut Vec<u8>| self.0.template.write_head(call, head);
        conn.begin(write, &call.body, call.spooled.as_ref());
        let first_byte = start + self.0.timeouts.first_byte;
        let (deadline, stage) = if total <= first_byte {
            (total, TimeoutStage::Total)
        } else {
            (first_byte, TimeoutStage::FirstByte)
        };
        let head = conn.answer(deadline, stage).await?;
        if head.accept.is_some() {
            return Err(CallError::broken(
                "the upstream switched protocols without being asked",
            ));
        }
        let idle = self.0.timeouts.idle;
        let body = Body::new(conn, head.framing, idle, total);
        Ok(UpstreamResponse {
            status: head.status,
            content_type: head.content_type,
            retry_after: head.retry_after.map(|it| it.wait(SystemTime::now)),
            body: if head.keep_alive {
                body.returning_to(Arc::clone(&self.0.pool))
            } else {
                body
            },
        })
    }

    /// Whether this is the origin of the channel's `base_url`.
    pub(crate) fn is_origin(&self, tls: bool, host: &str, port: u16) -> bool {
        let own = &self.0.address;
        own.tls == tls && own.port == port && own.host.eq_ignore_ascii_case(host)
    }

    /// Adds the header line with the channel's credential.
    pub(crate) fn write_credential(&self, head: &mut Vec<u8>) {
        self.0.template.write_credential(head);
    }

    /// Closes connections that have been idle for too long. Without this, a channel without calls
    /// would keep them.
    pub fn close_expired(&self) {
        self.0.pool.close_expired(Clock::now());
    }

    /// The number of idle connections.
    pub fn idle_connections(&self) -> usize {
        self.0.pool.len()
    }

    /// The state of the breaker. Reads the clock only if the breaker is not closed.
    pub fn state(&self, now: impl FnOnce() -> Instant) -> BreakerState {
        self.0.health.state(now)
    }

    /// Whether its models can be listed: it has a credential if it needs one, and the upstream has
    /// not refused it, or it is time to try it again. Other failures do not unlist a model.
    pub fn is_live(&self, now: impl FnOnce() -> Instant) -> bool {
        let bare = self.0.spec.credential.is_none() && self.0.spec.preset.needs_credential();
        !bare && !matches!(self.state(now), BreakerState::CredentialRefused { .. })
    }

    /// The text with the channel's credential replaced, because upstreams repeat what they refuse.
    pub fn without_credential(&self, text: &str) -> String {
        match &self.0.spec.credential {
            Some(secret) if !secret.is_empty() => text.replace(secret.expose(), "***"),
            _ => text.to_owned(),
        }
    }

    /// How long until a refused credential is tried again; `None` if it is not refused. Zero while
    /// a probe is under way.
    pub fn credential_retry_in(&self, now: Instant) -> Option<Duration> {
        self.0.health.credential_retry_in(now)
    }

    /// How its calls ended in the last 60 minutes, the oldest minute first.
    pub fn history(&self, now: Instant) -> [MinuteOfCalls; 60] {
        self.0.health.history(now)
    }

    /// Reports how a call ended at `now`.
    pub fn report(&self, outcome: CallOutcome, now: Instant) {
        self.0.health.report(outcome, now);
    }
}
