//! Failures that several parts of the engine report, and how long a client waits for an upstream.

use std::borrow::Cow;
use std::time::Duration;

use protocol::Failure;

/// The longest `retry-after` for trouble of an upstream. An upstream may ask for a day and recover within a minute.
const UPSTREAM_WAIT_MAX: Duration = Duration::from_secs(60);

/// Ends a body without its last chunk, because a clean end would mean that the answer is complete.
#[derive(Debug, thiserror::Error)]
#[error("the answer is cut off on purpose")]
pub struct Aborted;

/// The service cannot do something at the moment (503); the client should try again soon.
pub(crate) fn try_again_soon(message: impl Into<Cow<'static, str>>) -> Failure {
    Failure::unavailable(message).retry_soon()
}

/// Asks the client to retry when an upstream may have recovered.
pub(crate) fn retry_after_upstream(failure: Failure, wait: Duration) -> Failure {
    failure.retry_after(wait.min(UPSTREAM_WAIT_MAX))
}

/// The node has no memory left for `what`.
pub(crate) fn no_memory_for(what: &str) -> Failure {
    try_again_soon(format!("The service has no memory left for {what}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstreams_wait_is_rounded_up_and_has_a_cap() {
        for (wait_ms, seconds) in [
            (0, 1),
            (1_900, 2),
            (59_001, 60),
            (60_001, 60),
            (u64::MAX, 60),
        ] {
            let wait = Duration::from_millis(wait_ms);
            let failure = retry_after_upstream(Failure::unavailable("Overloaded."), wait);
            assert_eq!(failure.retry_after_s, Some(seconds), "{wait_ms}");
        }
    }
}
