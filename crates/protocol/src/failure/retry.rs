//! Computes how long clients are asked to wait. Every `retry-after` value comes from here.

use std::time::Duration;

/// The wait after a problem of the gateway that should pass soon.
pub const RETRY_SOON: Duration = Duration::from_secs(1);

/// The value of a `retry-after` header, in seconds. It is rounded up, so that a client that waits
/// is not refused for coming too early. It is at least 1, because 0 means "at once".
pub fn retry_after_seconds(wait: Duration) -> u32 {
    let started = u64::from(wait.subsec_nanos() > 0);
    let seconds = wait.as_secs().saturating_add(started).max(1);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_and_at_least_a_second() {
        for (wait, seconds) in [
            (Duration::ZERO, 1),
            (Duration::from_nanos(1), 1),
            (Duration::from_secs(1), 1),
            (Duration::new(1, 1), 2),
            (Duration::from_millis(1_900), 2),
            (Duration::from_secs(60), 60),
            (Duration::from_millis(60_001), 61),
            (Duration::from_millis(u64::MAX), u32::MAX),
            (Duration::MAX, u32::MAX),
        ] {
            assert_eq!(retry_after_seconds(wait), seconds, "{wait:?}");
        }
    }
}
