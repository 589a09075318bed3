//! What can go wrong with a channel's settings and with a call.

use std::error::Error;
use std::fmt;

/// TroubleCause a channel cannot be made from its settings. No message holds the credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The preset has no address of its own.
    #[error("base_url is required for this preset")]
    NoBaseUrl,
    /// The address is not one that can be called.
    #[error("base_url {0:?}: {1}")]
    BaseUrl(String, &'static str),
    /// A credential was given and nothing stands in it.
    #[error("the credential is empty")]
    EmptyCredential,
    /// The credential holds bytes that no header can carry.
    #[error("the credential holds characters that cannot stand in a header")]
    Credential,
    /// `protocols` was given and is empty.
    #[error("protocols is empty: the channel could serve nothing")]
    NoProtocols,
}

/// Whether the upstream may have seen the request; what may be tried again follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// No byte of the request left us.
    No,
    /// Some of it may have arrived, or all of it.
    Maybe,
}

/// The wait that a deadline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutStage {
    /// Name lookup, TCP or TLS.
    Connect,
    /// The answer's head.
    FirstByte,
    /// The next piece of the answer's body.
    Idle,
    /// The whole call.
    Total,
}

/// What went wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallErrorKind {
    /// The upstream could not be reached.
    Connect,
    /// A deadline passed.
    Timeout(TimeoutStage),
    /// What came is not an HTTP answer, or it broke off.
    Broken,
    /// The answer is larger than the caller of this crate allowed.
    TooLarge,
}

/// A call that gave no answer, or no whole one.
///
/// Its text and sources are for our log; they may name the upstream's address.
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

    /// The answer, or what came instead of it, cannot be used.
    pub(crate) fn broken(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::because(Sent::Maybe, CallErrorKind::Broken, source)
    }

    /// A connection that was closed while it rested: another one may do.
    pub(crate) fn is_stale(&self) -> bool {
        self.sent == Sent::No && self.kind == CallErrorKind::Broken
    }

    /// A deadline passed after the request had begun to leave.
    pub(crate) fn late(stage: TimeoutStage) -> Self {
        Self::new(Sent::Maybe, CallErrorKind::Timeout(stage))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            CallErrorKind::Connect => "the upstream cannot be reached",
            CallErrorKind::Timeout(TimeoutStage::Connect) => {
                "the upstream did not accept a connection in time"
            }
            CallErrorKind::Timeout(TimeoutStage::FirstByte) => {
                "the upstream did not begin to answer in time"
            }
            CallErrorKind::Timeout(TimeoutStage::Idle) => {
                "the upstream fell silent within its answer"
            }
            CallErrorKind::Timeout(TimeoutStage::Total) => {
                "the upstream did not finish its answer in time"
            }
            CallErrorKind::Broken => "the upstream's answer broke off or is not HTTP",
            CallErrorKind::TooLarge => "the upstream's answer is too large",
        })
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
