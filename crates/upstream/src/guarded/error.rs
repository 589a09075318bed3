//! Errors of fetches.

use std::error::Error as _;
use std::io;

use crate::error::CallError;

/// The reason why a URL or an address may not be called. The message may be shown to the client
/// that named the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefusal {
    #[error("the URL is longer than 2048 bytes")]
    TooLong,
    #[error("the URL cannot be read")]
    NotAUrl,
    #[error("the URL must begin with http:// or https://")]
    Scheme,
    #[error("the URL must not hold a user name or password")]
    Userinfo,
    #[error("the host of the URL is not a public name")]
    Name,
    /// The address is not public, or it is our own.
    #[error("the URL leads to an address that is not public")]
    Address,
    /// The channel leads to this gateway, so a call to it would call the gateway again.
    #[error("the address is that of this gateway")]
    Loop,
}

impl UrlRefusal {
    /// The refusal that caused the error of a guarded channel's call, if there was one.
    pub fn cause_of(error: &CallError) -> Option<Self> {
        let io = error.source()?.downcast_ref::<io::Error>()?;
        io.get_ref()?.downcast_ref().copied()
    }
}

/// A fetch that failed or is incomplete.
///
/// No message contains the URL: the client that sent it knows it already, and for anyone else it
/// may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Refused(#[from] UrlRefusal),
    #[error("the name of the host cannot be resolved")]
    Unresolved,
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the answer has the status {0}")]
    Status(u16),
    #[error("the URL redirects too often")]
    Redirects,
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
}
