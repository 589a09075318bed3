//! The clocks of the engine. In `protocol` and `ledger`, time is an argument; `store` and `upstream` read a clock
//! themselves where a call does not pass a time.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ledger::UnixMs;

/// The wall clock, in milliseconds since the Unix epoch. Records and the expiry of keys use it.
pub fn now() -> UnixMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMs::new(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A clock that cannot be set: the wall-clock time of the first call, continued by the monotonic clock. Leases and
/// deadlines of tasks use it, so that a jump of the wall clock does not move them (R6).
pub(crate) fn steady() -> UnixMs {
    static FIRST_LOOK: LazyLock<(UnixMs, Instant)> = LazyLock::new(|| (now(), Instant::now()));
    let (wall, begun) = *FIRST_LOOK;
    wall.plus_ms(i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_time_begins_with_the_wall_clock_and_goes_on() {
        let before = now();
        let first = steady();
        assert!(before <= first.plus_ms(5) && first <= now().plus_ms(5));
        let begun = Instant::now();
        while begun.elapsed().as_millis() < 3 {}
        assert!(steady() >= first.plus_ms(3));
    }
}
