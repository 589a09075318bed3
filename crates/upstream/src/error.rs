//! Errors of channel settings and of calls.

use std::error::Error;
use std::fmt;

/// The reason why a channel cannot be created from its settings. No message contains the
/// credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The preset has no default address.
    #[error("base_url is required for this preset")]
    NoBaseUrl,
    /// The address cannot be called.
    #[error("base_url {0:?}: {1}")]
    BaseUrl(String, &'static str),
    /// The credential is empty.
    #[error("the credential is empty")]
    EmptyCredential,
    /// The credential contains bytes that a header cannot carry.
    #[error("the credential contains characters that a header cannot carry")]
    Credential,
    /// The credential has none of the forms that the preset accepts.
    #[error("the credential is not of a form that this preset uses")]
    CredentialForm,
    /// The credential is a key file that cannot be used.
    #[error("the key file {0}")]
    ServiceAccount(&'static str),
    /// A setting that the preset requires is missing from the account.
    #[error("account.{0} is required for this preset")]
    NoSetting(String),
    /// The value of a setting cannot be used.
    #[error("account.{0} {1}")]
    Setting(String, &'static str),
    /// The token endpoint cannot be called.
    #[error("the token endpoint {0:?}: {1}")]
    TokenUrl(String, &'static str),
    /// `protocols` is set but empty.
    #[error("protocols is empty: the channel could serve nothing")]
    NoProtocols,
}

/// Whether the upstream may have seen the request. This determines whether the request may be sent
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// No byte of the request was sent.
    No,
    /// Some or all of the request may have arrived.
    Maybe,
}

/// The stage of a call at which a deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutStage {
    /// DNS lookup, TCP or TLS.
    Connect,
    /// Waiting for the head of the response.
    FirstByte,
    /// Waiting for the next piece of the response body.
    Idle,
    /// The whole call.
    Total,
}

/// The kind of failure of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallErrorKind {
    /// The upstream could not be reached, or its token endpoint gave us no token for now.
    Connect,
    /// Nothing was sent, because the token endpoint refused our credential.
    Credential,
    /// A deadline passed.
    Timeout(TimeoutStage),
    /// The response is not valid HTTP, or it broke off.
    Broken,
    /// The response exceeds its size limit.
    TooLarge,
    /// Nothing was sent, because the request body is in a file and therefore cannot be signed. This
    /// says nothing about the upstream.
    Unsignable,
}

/// The error of a call that got no response or an incomplete one.
///
/// The message and the sources are for the log. They may contain the upstream's address.
#[derive(Debug)]
pub struct CallError {
    /// Whether the upstream may have seen the request.
    pub sent: Sent,
    /// What went wrong.
    pub kind: CallErrorKind,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl CallError {
    pub(crate) fn new(sent: Sent, kind: CallErrorKind) -> Self {
        Self {
            sent,
            kind,
            source: None,
        }
    }

    pub(crate) fn because(
        sent: Sent,
        kind: CallErrorKind,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            sent,
            kind,
            source: Some(source.into()),
        }
    }

    /// The error for a response that cannot be used.
    pub(crate) fn broken(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::because(Sent::Maybe, CallErrorKind::Broken, source)
    }

    /// Whether the upstream had closed an idle connection. The call can use another connection.
    pub(crate) fn is_stale(&self) -> bool {
        self.sent == Sent::No && self.kind == CallErrorKind::Broken
    }

    /// The error for a deadline that passed after some of the request was sent.
    pub(crate) fn late(stage: TimeoutStage) -> Self {
        Self::new(Sent::Maybe, CallErrorKind::Timeout(stage))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            CallErrorKind::Connect => "the upstream cannot be reached",
            CallErrorKind::Credential => "there is no token for the upstream",
            CallErrorKind::Timeout(TimeoutStage::Connect) => {
                "the upstream did not accept a connection in time"
            }
            CallErrorKind::Timeout(TimeoutStage::FirstByte) => {
                "the upstream did not begin to answer in time"
            }
            CallErrorKind::Timeout(TimeoutStage::Idle) => {
                "the upstream stopped sending in the middle of its answer"
            }
            CallErrorKind::Timeout(TimeoutStage::Total) => {
                "the upstream did not finish its answer in time"
            }
            CallErrorKind::Broken => "the upstream's answer broke off or is not HTTP",
            CallErrorKind::TooLarge => "the upstream's answer is too large",
            CallErrorKind::Unsignable => "the request is too large to be signed",
        })
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
