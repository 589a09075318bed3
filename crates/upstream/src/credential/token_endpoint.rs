//! Requests tokens. The rules for calls to upstreams apply: deadlines, public root certificates, no
//! redirects.

use std::fmt;
use std::io::Write as _;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::time::Instant;

use super::client_credentials::{self, ClientCredentials};
use super::service_account::{self, ServiceAccount};
use super::token::{Token, TokenError};
use crate::address::Address;
use crate::error::{ChannelError, TimeoutStage};
use crate::guarded::AddressPolicy;
use crate::header_line::USER_AGENT;
use crate::response::Body;
use crate::wire::{Connection, Connector, MemoryDialer};

/// The time limit of a request, from the DNS lookup to the last byte of the answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// The size limit of an answer. Tokens have a few kilobytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Which addresses a channel may call, and how it reaches them.
#[derive(Clone, Debug, Default)]
pub(crate) enum NetworkAccess {
    /// The address that the operator has configured.
    #[default]
    Configured,
    /// Only addresses that the policy allows, because the channel is not configured yet.
    Guarded(AddressPolicy),
    /// A listener in this process.
    Memory(MemoryDialer),
}

impl NetworkAccess {
    pub(crate) fn connector(&self, address: &Address) -> Result<Connector, ChannelError> {
        let connector = Connector::new(address)?;
        Ok(match self {
            Self::Configured => connector,
            Self::Guarded(policy) => connector.guarded_by(policy.clone()),
            Self::Memory(dialer) => connector.via_memory(dialer.clone()),
        })
    }
}

/// The credential that is exchanged for a token.
#[derive(Debug)]
pub(super) enum TokenCredential {
    Client(ClientCredentials),
    Account(ServiceAccount),
}

impl From<ClientCredentials> for TokenCredential {
    fn from(client: ClientCredentials) -> Self {
        Self::Client(client)
    }
}

impl From<ServiceAccount> for TokenCredential {
    fn from(account: ServiceAccount) -> Self {
        Self::Account(account)
    }
}

pub(super) struct TokenEndpoint {
    address: Address,
    connector: Connector,
    credential: TokenCredential,
}

impl TokenEndpoint {
    pub(super) fn new(
        url: &str,
        credential: TokenCredential,
        access: &NetworkAccess,
    ) -> Result<Self, ChannelError> {
        let address = Address::parse(url).map_err(|error| match error {
            ChannelError::BaseUrl(url, why) => ChannelError::TokenUrl(url, why),
            other => other,
        })?;
        Ok(Self {
            connector: access.connector(&address)?,
            address,
            credential,
        })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) async fn ask(&self) -> Result<Token, TokenError> {
        let now = SystemTime::now();
        let (form, margin) = match &self.credential {
            TokenCredential::Client(client) => (client.form(), client_credentials::MARGIN),
            TokenCredential::Account(account) => (account.form(now)?, service_account::MARGIN),
        };
        let asked_at = Instant::now();
        let (status, body) = self
            .exchange(form, asked_at + ANSWERED_WITHIN)
            .await
            .map_err(|error| TokenError::Transient(error.to_string()))?;
        Token::read(status, &body, asked_at, margin)
    }

    async fn exchange(
        &self,
        form: String,
        deadline: Instant,
    ) -> Result<(u16, Bytes), crate::error::CallError> {
        let stream = self.connector.connect(deadline).await?;
        let mut conn = Box::new(Connection::new(stream, deadline));
        let body = Bytes::from(form);
        let write = |head: &mut Vec<u8>| {
            // Writing into a Vec cannot fail.
            let _ = write!(
                head,
                "POST {} HTTP/1.1\r\nhost: {}\r\nuser-agent: {USER_AGENT}\r\naccept: application/json\r\n\
                 accept-encoding: identity\r\ncontent-type: application/x-www-form-urlencoded\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n",
                if self.address.path.is_empty() {
                    "/"
                } else {
                    &self.address.path
                },
                self.address.authority,
                body.len(),
            );
        };
        conn.begin(write, std::slice::from_ref(&body), None);
        let head = conn.answer(deadline, TimeoutStage::FirstByte).await?;
        let answer = Body::new(conn, head.framing, ANSWERED_WITHIN, deadline);
        Ok((head.status, answer.collect(ANSWER_BYTES_MAX).await?))
    }
}

impl fmt::Debug for TokenEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenEndpoint")
            .field("host", &self.address.authority)
            .finish_non_exhaustive()
    }
}
