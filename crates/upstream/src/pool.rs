//! Connections that rest between calls.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How many may rest; one that comes back to a full pool is closed.
const RESTING_MAX: usize = 1024;
/// How long one may rest. Many upstreams close at 60 s or later; to come before them
/// spares a call that meets a closing connection.
const REST_MAX: Duration = Duration::from_secs(55);
/// How many that rested too long are closed with each one that comes back.
const PRUNED_PER_RETURN: usize = 2;

/// The resting connections of one channel.
///
/// The one that came last goes out first, so that those above the need grow old and are
/// closed, and the rest stay warm.
pub(crate) struct Pool<C> {
    resting: Mutex<VecDeque<(Instant, C)>>,
}

impl<C> Pool<C> {
    pub(crate) fn new() -> Self {
        Self {
            resting: Mutex::new(VecDeque::new()),
        }
    }

    /// A connection that has not rested too long.
    pub(crate) fn take(&self, now: Instant) -> Option<C> {
        let mut resting = self.resting.lock();
        let (since, conn) = resting.pop_back()?;
        if now.saturating_duration_since(since) <= REST_MAX {
            return Some(conn);
        }
        // The youngest is too old, so all are. They are closed after the lock is gone.
        let expired = std::mem::take(&mut *resting);
        drop(resting);
        drop((conn, expired));
        None
    }

    /// Lets a connection rest.
    pub(crate) fn put(&self, conn: C, now: Instant) {
        let mut closed = [const { None }; PRUNED_PER_RETURN];
        let mut resting = self.resting.lock();
        let is_old = |since| now.saturating_duration_since(since) > REST_MAX;
        for place in &mut closed {
            if resting.front().is_some_and(|&(since, _)| is_old(since)) {
                *place = resting.pop_front();
            }
        }
        if resting.len() < RESTING_MAX {
            resting.push_back((now, conn));
        }
        drop(resting);
        drop(closed);
    }

    /// How many rest now.
    pub(crate) fn len(&self) -> usize {
        self.resting.lock().len()
    }
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("resting", &self.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{Pool, RESTING_MAX};

    fn times() -> impl Fn(u64) -> Instant {
        let start = Instant::now();
        move |seconds| start + Duration::from_secs(seconds)
    }

    #[test]
    fn the_last_that_came_goes_out_first() {
        let (pool, at) = (Pool::new(), times());
        pool.put("a", at(0));
        pool.put("b", at(1));
        assert_eq!(pool.take(at(2)), Some("b"));
        assert_eq!(pool.take(at(2)), Some("a"));
        assert_eq!(pool.take(at(2)), None);
    }

    #[test]
    fn one_that_rested_too_long_is_not_given_out() {
        let (pool, at) = (Pool::new(), times());
        pool.put("a", at(0));
        pool.put("b", at(1));
        assert_eq!(pool.take(at(56)), Some("b"));
        assert_eq!(pool.take(at(56)), None);
        assert_eq!(pool.len(), 0);
    }

    #[test]
    fn those_above_the_need_are_closed_as_others_come_back() {
        let (pool, at) = (Pool::new(), times());
        for name in ["a", "b", "c", "d"] {
            pool.put(name, at(0));
        }
        pool.put("e", at(60));
        assert_eq!(pool.len(), 3);
        pool.put("f", at(60));
        assert_eq!(pool.len(), 2);
        assert_eq!(pool.take(at(61)), Some("f"));
        assert_eq!(pool.take(at(61)), Some("e"));
    }

    #[test]
    fn a_full_pool_closes_what_comes_back() {
        let (pool, at) = (Pool::new(), times());
        for number in 0..RESTING_MAX + 5 {
            pool.put(number, at(0));
        }
        assert_eq!(pool.len(), RESTING_MAX);
    }
}
