//! Failures that several parts of the engine use, and the limit of an upstream's `retry-after`.

use std::borrow::Cow;
use std::time::Duration;

use protocol::Failure;

/// The longest `retry-after` that we pass on for an upstream's failure. An upstream may ask for a day and recover
/// within a minute.
const UPSTREAM_WAIT_MAX: Duration = Duration::from_secs(60);

/// The error that ends a body without its last chunk, because a clean end would mean that the answer is complete.
#[derive(Debug, thiserror::Error)]
#[error("the answer is cut off on purpose")]
pub struct Aborted;

/// The failure for something that is impossible at the moment (503). The client should try again soon.
pub(crate) fn try_again_soon(message: impl Into<Cow<'static, str>>) -> Failure {
    Failure::unavailable(message).retry_soon()
}

/// Asks the client to retry at a time when the upstream may have recovered.
pub(crate) fn retry_after_upstream(failure: Failure, wait: Duration) -> Failure {
    failure.retry_after(wait.min(UPSTREAM_WAIT_MAX))
}

/// The failure for `what` if the node has no memory left.
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
