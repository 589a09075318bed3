//! Failures that several parts of the engine report, and how long a client is told to wait.

use std::borrow::Cow;
use std::time::Duration;

use protocol::Failure;

/// The pause that a client is told to make when our own trouble should pass soon.
const RETRY_SOON_S: u32 = 1;
/// The longest pause that a client is told to make.
const RETRY_AFTER_S_MAX: u64 = 60;

/// The body must end without its last chunk, because a clean end would mean that it is complete.
#[derive(Debug, thiserror::Error)]
#[error("the answer is cut off on purpose")]
pub struct Aborted;

/// The service cannot do something at the moment (503); the client should try again soon.
pub(crate) fn try_again_soon(message: impl Into<Cow<'static, str>>) -> Failure {
    soon(Failure::unavailable(message))
}

/// Adds the shortest pause to a failure.
pub(crate) fn soon(failure: Failure) -> Failure {
    failure.retry_after(RETRY_SOON_S)
}

/// The node has no memory left for `what`.
pub(crate) fn no_memory_for(what: &str) -> Failure {
    try_again_soon(format!("The service has no memory left for {what}."))
}

/// The seconds that a client is told to wait for `pause`: at least one, and never very many.
pub(crate) fn retry_after_s(pause: Duration) -> u32 {
    let seconds = pause
        .as_secs()
        .clamp(RETRY_SOON_S.into(), RETRY_AFTER_S_MAX);
    u32::try_from(seconds).unwrap_or(RETRY_SOON_S)
}
