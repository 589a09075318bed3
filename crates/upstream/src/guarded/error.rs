//! TroubleCause something was not fetched.

use crate::error::CallError;

/// TroubleCause a link or an address may not be called. The words may be shown to whoever named it.
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
    /// An address that is not public, or one of ours.
    #[error("the URL leads to an address that is not public")]
    Address,
}

/// A fetch that gave nothing, or not all of it.
///
/// No text holds the address: where it came from it is known, and elsewhere it may be a secret.
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
    #[error("the answer leads on and on")]
    Redirects,
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
}
