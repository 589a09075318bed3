//! Authorises the requests of a channel.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::HeaderValue;
use tokio::time::Instant;

use super::account::Account;
use super::client_credentials::ClientCredentials;
use super::form::CredentialForm;
use super::service_account::ServiceAccount;
use super::signer::{BodyHash, Signer};
use super::token::{Token, TokenError};
use super::token_endpoint::{NetworkAccess, TokenEndpoint};
use super::token_source::TokenSource;
use crate::address::Address;
use crate::error::{CallError, ChannelError};
use crate::header_line::write_line;
use crate::preset::{Auth, Preset};
use crate::secret::Secret;

#[derive(Debug)]
pub(crate) enum Authorization {
    /// The same header line in every request; empty if there is no credential.
    Fixed(Box<[u8]>),
    /// A bearer token that expires.
    Token(Box<TokenSource>),
    /// A separate signature in each request.
    Signed(Arc<Signer>),
}

#[derive(Clone, Debug)]
pub(crate) enum RequestAuth {
    /// The header line that is part of every request of the channel.
    Fixed,
    Token(Arc<Token>),
    /// A signature that covers the written head and a body with this hash.
    Signed(Arc<Signer>, BodyHash),
}

impl Authorization {
    pub(crate) fn new(
        preset: Preset,
        account: &Account,
        credential: Option<&Secret>,
        access: &NetworkAccess,
    ) -> Result<Self, ChannelError> {
        let default_credential = || preset.default_credential().map(Secret::new);
        let Some(secret) = credential.cloned().or_else(default_credential) else {
            return Ok(Self::Fixed(Box::default()));
        };
        let form = CredentialForm::of(preset.credential_forms(), account, &secret);
        let endpoint = match form.ok_or(ChannelError::CredentialForm)? {
            CredentialForm::Key => return Ok(Self::Fixed(fixed_line(preset.auth(), &secret)?)),
            CredentialForm::ClientCredentials => {
                let (url, scope) = preset.token_facts(account)?;
                let client = ClientCredentials::new(account, secret, scope)?;
                TokenEndpoint::new(&url, client.into(), access)?
            }
            CredentialForm::ServiceAccount => {
                let (_, scope) = preset.token_facts(account)?;
                let (signer, url) = ServiceAccount::read(&secret, scope)?;
                TokenEndpoint::new(&url, signer.into(), access)?
            }
            CredentialForm::AccessKey => {
                let service = preset.signing_service();
                let service = service.ok_or(ChannelError::CredentialForm)?;
                let signer = Signer::new(account, &secret, service)?;
                return Ok(Self::Signed(Arc::new(signer)));
            }
        };
        Ok(Self::Token(Box::new(TokenSource::new(endpoint))))
    }

    pub(crate) fn fixed_line(&self) -> &[u8] {
        match self {
            Self::Fixed(line) => line,
            Self::Token(_) | Self::Signed(_) => &[],
        }
    }

    pub(crate) fn token_address(&self) -> Option<&Address> {
        match self {
            Self::Fixed(_) | Self::Signed(_) => None,
            Self::Token(source) => Some(source.address()),
        }
    }

    /// Whether the body of a request must be known before its head can be written.
    pub(crate) fn is_signature(&self) -> bool {
        matches!(self, Self::Signed(_))
    }

    /// Authorises a request with this body, to be sent now. Waits for a token if there is none.
    pub(crate) async fn for_request(
        &self,
        body: &[Bytes],
        deadline: Instant,
    ) -> Result<RequestAuth, CallError> {
        match self {
            Self::Fixed(_) => Ok(RequestAuth::Fixed),
            Self::Token(source) => source.token(deadline).await.map(RequestAuth::Token),
            Self::Signed(signer) => {
                let hash = BodyHash::compute(body).await;
                Ok(RequestAuth::Signed(Arc::clone(signer), hash))
            }
        }
    }

    /// Gets another authorisation after the upstream has refused this one; `None` if there is no other.
    pub(crate) async fn after_refusal(
        &self,
        refused: &RequestAuth,
        deadline: Instant,
    ) -> Option<RequestAuth> {
        match (self, refused) {
            (Self::Token(source), RequestAuth::Token(refused)) => source
                .token_after(refused, deadline)
                .await
                .map(RequestAuth::Token),
            _ => None,
        }
    }

    /// Renews the token. `None` if there is none, its renewal is not due, or the last failure is too recent.
    pub(crate) async fn renew(&self) -> Option<Result<(), TokenError>> {
        match self {
            Self::Fixed(_) | Self::Signed(_) => None,
            Self::Token(source) => source.renew().await,
        }
    }

    /// Adds the credential's header line, if there is one, to a fetch from the upstream's own origin.
    pub(crate) fn write_for_fetch(&self, head: &mut Vec<u8>) {
        match self {
            Self::Fixed(line) => head.extend_from_slice(line),
            // Answers of a signed channel link to files that can be fetched without a credential.
            Self::Signed(_) => {}
            Self::Token(source) => {
                if let Some(token) = source.current() {
                    head.extend_from_slice(token.line());
                }
            }
        }
    }

    /// Removes the current token from a text of the upstream, because upstreams repeat what they refuse.
    pub(crate) fn without_token(&self, text: String) -> String {
        match self {
            Self::Fixed(_) | Self::Signed(_) => text,
            Self::Token(source) => match source.current() {
                Some(token) => text.replace(token.text(), "***"),
                None => text,
            },
        }
    }
}

impl RequestAuth {
    /// Adds the authorisation header lines of this request. `head` already has the request line and all other headers.
    pub(crate) fn write(&self, head: &mut Vec<u8>) {
        match self {
            Self::Fixed => {}
            Self::Token(token) => head.extend_from_slice(token.line()),
            Self::Signed(signer, body) => {
                let lines = signer.sign(head, body, SystemTime::now());
                head.extend(lines.unwrap_or_default());
            }
        }
    }
}

fn fixed_line(auth: Auth, secret: &Secret) -> Result<Box<[u8]>, ChannelError> {
    let (name, value) = match auth {
        Auth::Bearer => ("authorization", format!("Bearer {}", secret.expose())),
        Auth::Header(name) => (name, secret.expose().to_owned()),
    };
    let value = HeaderValue::try_from(value).map_err(|_| ChannelError::Credential)?;
    let mut line = Vec::new();
    write_line(&mut line, name, &value);
    Ok(line.into())
}
