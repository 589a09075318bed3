//! A channel: one account at an upstream, with its settings, connections and health.

use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::Dialect;
use tokio::time::Instant as Clock;

use crate::address::Address;
use crate::breaker::{BreakerState, CallOutcome};
use crate::channel_protocol::Protocol;
use crate::credential::{Authorization, CredentialForm, NetworkAccess, TokenError};
use crate::endpoint::Endpoint;
use crate::error::ChannelError;
use crate::guarded::AddressPolicy;
use crate::head_template::HeadTemplate;
use crate::health::Health;
use crate::history::MinuteOfCalls;
use crate::open_connections::OpenConnections;
use crate::pool::Pool;
use crate::secret::Secret;
use crate::timeouts::Timeouts;
use crate::wire::{Connection, Connector, MemoryDialer, MemoryListener};

mod send;
mod spec;

pub use spec::ChannelSpec;
use spec::identity_words;

/// One account at an upstream. Clones refer to the same account and share connections and health.
#[derive(Clone, Debug)]
pub struct Channel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: ChannelSpec,
    timeouts: Timeouts,
    protocols: Vec<Protocol>,
    address: Address,
    template: HeadTemplate,
    authorization: Authorization,
    /// Lower-case words that identify the upstream.
    identity: Box<[Box<str>]>,
    connector: Connector,
    pool: Arc<Pool<Box<Connection>>>,
    open: OpenConnections,
    health: Health,
}

impl Channel {
    /// Checks the settings and creates a channel. No connection is opened before the first call.
    pub fn new(spec: ChannelSpec, timeouts: Timeouts) -> Result<Self, ChannelError> {
        Self::with_access(spec, timeouts, &NetworkAccess::Configured)
    }

    /// Like [`Channel::new`], for an upstream in this process that accepts connections from an in-memory listener.
    /// Nothing else differs, so tests can run complete calls in virtual time.
    pub fn in_memory(
        spec: ChannelSpec,
        timeouts: Timeouts,
    ) -> Result<(Self, MemoryListener), ChannelError> {
        let (dialer, listener) = MemoryDialer::new();
        let channel = Self::with_access(spec, timeouts, &NetworkAccess::Memory(dialer))?;
        Ok((channel, listener))
    }

    /// Creates a channel for an upstream that is not configured yet. It calls only addresses that the policy allows.
    pub fn guarded(
        spec: ChannelSpec,
        timeouts: Timeouts,
        policy: AddressPolicy,
    ) -> Result<Self, ChannelError> {
        Self::with_access(spec, timeouts, &NetworkAccess::Guarded(policy))
    }

    fn with_access(
        spec: ChannelSpec,
        timeouts: Timeouts,
        access: &NetworkAccess,
    ) -> Result<Self, ChannelError> {
        let base_url = match &spec.base_url {
            Some(named) => Some(named.clone()),
            None => spec.preset.base_url_of(&spec.account)?,
        };
        let address = Address::parse(&base_url.ok_or(ChannelError::NoBaseUrl)?)?;
        if spec.credential.as_ref().is_some_and(Secret::is_empty) {
            return Err(ChannelError::EmptyCredential);
        }
        let protocols = match &spec.protocols {
            Some(protocols) if protocols.is_empty() => return Err(ChannelError::NoProtocols),
            Some(protocols) => protocols.clone(),
            None => spec.preset.protocols().to_vec(),
        };
        let (preset, account) = (spec.preset, &spec.account);
        let authorization = Authorization::new(preset, account, spec.credential.as_ref(), access)?;
        let line = authorization.fixed_line();
        Ok(Self(Arc::new(Inner {
            timeouts,
            protocols,
            template: HeadTemplate::new(preset, account, &address, line)?,
            authorization,
            identity: identity_words(&spec, &address.host),
            connector: access.connector(&address)?,
            address,
            pool: Arc::new(Pool::new()),
            open: OpenConnections::default(),
            health: Health::default(),
            spec,
        })))
    }

    /// The channel's name in the configuration.
    pub fn name(&self) -> &str {
        &self.0.spec.name
    }

    /// The address that the channel calls.
    pub fn base_url(&self) -> String {
        let Address {
            tls,
            authority,
            path,
            ..
        } = &self.0.address;
        let scheme = if *tls { "https" } else { "http" };
        format!("{scheme}://{authority}{path}")
    }

    /// Lower-case words that identify the upstream and must never reach a client.
    pub fn identity(&self) -> &[Box<str>] {
        &self.0.identity
    }

    /// The settings that the channel was created from. A reload keeps a channel whose settings did not change.
    pub fn spec(&self) -> &ChannelSpec {
        &self.0.spec
    }

    /// The deadlines of the channel's calls.
    pub fn timeouts(&self) -> Timeouts {
        self.0.timeouts
    }

    /// The protocols that the channel speaks, in the order of the configuration.
    pub fn protocols(&self) -> &[Protocol] {
        &self.0.protocols
    }

    /// Whether the channel speaks this protocol.
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

    /// How long to keep reading for the usage report after the client has gone; `None` if the channel does not set it.
    pub fn client_gone_drain(&self) -> Option<Duration> {
        self.spec().client_gone_drain
    }

    /// The dialect to send a call in, if the client uses dialect `client`: the dialect pinned by the route, otherwise
    /// the client's own, otherwise the first text dialect of the channel. `None` if the channel does not speak the
    /// pinned dialect, or no text dialect at all.
    pub fn text_dialect_for(&self, client: Dialect, pinned: Option<Dialect>) -> Option<Dialect> {
        if let Some(pinned) = pinned {
            return self.speaks(pinned.into()).then_some(pinned);
        }
        if self.speaks(client.into()) {
            return Some(client);
        }
        self.0.protocols.iter().find_map(|it| it.dialect())
    }

    /// The endpoint for text in a dialect that the channel speaks. Messages requests go to Converse if the channel does
    /// not speak Messages itself.
    pub fn text_endpoint(&self, dialect: Dialect, stream: bool) -> Endpoint {
        let is_converse = dialect == Dialect::Messages
            && !self.speaks(Protocol::Messages)
            && self.speaks(Protocol::Converse);
        if is_converse {
            Endpoint::Converse { stream }
        } else {
            Endpoint::Text { dialect, stream }
        }
    }

    /// Renews the channel's token if it is due; returns `None` if it is not. The engine calls this regularly, so that
    /// calls rarely have to wait for a token.
    pub async fn renew_token(&self) -> Option<Result<(), TokenError>> {
        self.0.authorization.renew().await
    }

    /// Whether this channel calls all origins that `other` calls, for requests and for tokens.
    pub fn shares_origin_with(&self, other: &Self) -> bool {
        let theirs = &other.0.address;
        let same_tokens = match other.0.authorization.token_address() {
            None => true,
            address => self.0.authorization.token_address() == address,
        };
        same_tokens && self.is_origin(theirs.tls, &theirs.host, theirs.port)
    }

    /// Whether these are the scheme, host and port of the channel's `base_url`.
    pub(crate) fn is_origin(&self, tls: bool, host: &str, port: u16) -> bool {
        let own = &self.0.address;
        own.tls == tls && own.port == port && own.host.eq_ignore_ascii_case(host)
    }

    /// Whether a URL has the same origin as the channel's `base_url`.
    pub fn leads_to(&self, url: &str) -> bool {
        Address::parse(url).is_ok_and(|it| self.is_origin(it.tls, &it.host, it.port))
    }

    /// Adds the header line with the channel's credential, for a fetch from the channel's own origin.
    pub(crate) fn write_credential(&self, head: &mut Vec<u8>) {
        self.0.authorization.write_for_fetch(head);
    }

    /// Closes connections that have been idle for too long. Without this, a channel that gets no calls would keep them.
    pub fn close_expired(&self) {
        self.0.pool.close_expired(Clock::now());
    }

    /// The number of open connections, in use or idle.
    pub fn open_connections(&self) -> usize {
        self.0.open.count()
    }

    /// The number of idle connections.
    pub fn idle_connections(&self) -> usize {
        self.0.pool.len()
    }

    /// The state of the breaker. Reads the clock only if the breaker is not closed.
    pub fn state(&self, now: impl FnOnce() -> Instant) -> BreakerState {
        self.0.health.state(now)
    }

    /// Whether the channel's models can be listed. They are not listed if a required credential is missing, or if the
    /// upstream has refused the credential and it is not yet time to try again. Other failures do not unlist a model.
    pub fn is_live(&self, now: impl FnOnce() -> Instant) -> bool {
        let bare = self.0.spec.credential.is_none() && self.0.spec.preset.needs_credential();
        !bare && !matches!(self.state(now), BreakerState::CredentialRefused { .. })
    }

    /// Replaces the channel's secrets in a text from the upstream. Upstreams repeat what they refuse: the answer to a
    /// wrong signature contains all signed headers. The text may be JSON.
    pub fn without_credential(&self, text: &str) -> String {
        let spec = &self.0.spec;
        let credential = spec.credential.as_ref().map(Secret::expose);
        let secrets = credential
            .into_iter()
            .chain(CredentialForm::secrets_of(&spec.account));
        let mut text = text.to_owned();
        for secret in secrets.filter(|it| !it.is_empty()) {
            text = text.replace(secret, "***");
            if secret.contains('/') {
                text = text.replace(&secret.replace('/', r"\/"), "***");
            }
        }
        self.0.authorization.without_token(text)
    }

    /// The time until a refused credential is tried again; `None` if it is not refused or may be tried now. Zero if the
    /// cooldown is over and a probe is under way.
    pub fn credential_retry_in(&self, now: Instant) -> Option<Duration> {
        self.0.health.credential_retry_in(now)
    }

    /// The outcomes of the channel's calls in the last 60 minutes, oldest minute first.
    pub fn history(&self, now: Instant) -> [MinuteOfCalls; 60] {
        self.0.health.history(now)
    }

    /// Reports the outcome of a call that ended at `now`.
    pub fn report(&self, outcome: CallOutcome, now: Instant) {
        self.0.health.report(outcome, now);
    }
}
