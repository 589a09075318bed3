//! The pool of a channel's idle connections.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Id;
use tokio::time::Instant;

/// The maximum number of idle connections. A connection that returns to a full pool is closed.
const IDLE_CONNECTIONS_MAX: usize = 1024;
/// How long a connection may be idle. Many upstreams close idle connections after 60 s or later. We
/// close first, so that a call does not use a connection that is being closed.
const IDLE_TIME_MAX: Duration = Duration::from_secs(55);
/// The maximum number of expired connections that are closed when a connection is returned.
const PRUNED_PER_RETURN: usize = 2;

/// The idle connections of one channel.
///
/// A connection stays with the runtime that opened it, because that runtime polls its socket. The
/// connection returned last is used first, so that surplus connections expire and the others stay
/// in use.
pub(crate) struct Pool<C> {
    runtimes: Mutex<Vec<RuntimeConnections<C>>>,
}

struct RuntimeConnections<C> {
    runtime: Id,
    idle: VecDeque<(Instant, C)>,
}

impl<C> Pool<C> {
    pub(crate) fn new() -> Self {
        Self {
            runtimes: Mutex::new(Vec::new()),
        }
    }

    /// Takes a connection of this runtime that has not expired.
    pub(crate) fn take(&self, runtime: Id, now: Instant) -> Option<C> {
        let mut runtimes = self.runtimes.lock();
        let runtime = runtimes.iter_mut().find(|it| it.runtime == runtime)?;
        let (since, conn) = runtime.idle.pop_back()?;
        if !is_expired(since, now) {
            return Some(conn);
        }
        // The newest connection has expired, so all of them have. They are closed after the lock is
        // released.
        let expired = std::mem::take(&mut runtime.idle);
        drop(runtimes);
        drop((conn, expired));
        None
    }

    /// Returns a connection that this runtime opened.
    pub(crate) fn put(&self, conn: C, runtime: Id, now: Instant) {
        let mut closed = [const { None }; PRUNED_PER_RETURN];
        let mut runtimes = self.runtimes.lock();
        for place in &mut closed {
            *place = runtimes
                .iter_mut()
                .find_map(|RuntimeConnections { idle, .. }| {
                    idle.front().filter(|(since, _)| is_expired(*since, now))?;
                    idle.pop_front()
                });
        }
        if runtimes
            .iter()
            .map(|runtime| runtime.idle.len())
            .sum::<usize>()
            < IDLE_CONNECTIONS_MAX
        {
            let known = runtimes.iter_mut().find(|it| it.runtime == runtime);
            match known {
                Some(runtime) => runtime.idle.push_back((now, conn)),
                None => runtimes.push(RuntimeConnections {
                    runtime,
                    idle: VecDeque::from([(now, conn)]),
                }),
            }
        }
        drop(runtimes);
        drop(closed);
    }

    /// Closes expired connections of all runtimes.
    pub(crate) fn close_expired(&self, now: Instant) {
        let mut closed = Vec::new();
        for RuntimeConnections { idle, .. } in self.runtimes.lock().iter_mut() {
            // The oldest connection is first.
            let expired = idle.partition_point(|(since, _)| is_expired(*since, now));
            closed.extend(idle.drain(..expired));
        }
        // The connections are closed after the lock is released, because closing takes system
        // calls.
        drop(closed);
    }

    pub(crate) fn len(&self) -> usize {
        let runtimes = self.runtimes.lock();
        runtimes.iter().map(|runtime| runtime.idle.len()).sum()
    }
}

fn is_expired(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) > IDLE_TIME_MAX
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("idle", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::{Builder, Id};
    use tokio::time::Instant;

    use super::{IDLE_CONNECTIONS_MAX, Pool};

    fn home() -> Id {
        let runtime = Builder::new_current_thread().build();
        runtime.unwrap().handle().id()
    }

    fn times() -> impl Fn(u64) -> Instant {
        let start = Instant::now();
        move |seconds| start + Duration::from_secs(seconds)
    }

    #[test]
    fn the_last_that_came_goes_out_first() {
        let (pool, home, at) = (Pool::new(), home(), times());
        pool.put("a", home, at(0));
        pool.put("b", home, at(1));
        assert_eq!(pool.take(home, at(2)), Some("b"));
        assert_eq!(pool.take(home, at(2)), Some("a"));
        assert_eq!(pool.take(home, at(2)), None);
    }

    #[test]
    fn a_connection_stays_with_its_runtime() {
        let (pool, at) = (Pool::new(), times());
        let (here, there) = (home(), home());
        pool.put("a", here, at(0));
        pool.put("b", there, at(0));
        assert_eq!((pool.take(here, at(1)), pool.len()), (Some("a"), 1));
        assert_eq!(pool.take(here, at(1)), None);
        // Expired connections are closed, whichever runtime opened them.
        pool.put("c", here, at(60));
        assert_eq!((pool.take(there, at(60)), pool.len()), (None, 1));
    }

    #[test]
    fn one_that_rested_too_long_is_not_given_out() {
        let (pool, home, at) = (Pool::new(), home(), times());
        pool.put("a", home, at(0));
        pool.put("b", home, at(1));
        assert_eq!(pool.take(home, at(56)), Some("b"));
        assert_eq!(pool.take(home, at(56)), None);
        assert_eq!(pool.len(), 0);
    }

    #[test]
    fn those_above_the_need_are_closed_as_others_come_back() {
        let (pool, home, at) = (Pool::new(), home(), times());
        for name in ["a", "b", "c", "d"] {
            pool.put(name, home, at(0));
        }
        pool.put("e", home, at(60));
        assert_eq!(pool.len(), 3);
        pool.put("f", home, at(60));
        assert_eq!(pool.len(), 2);
        assert_eq!(pool.take(home, at(61)), Some("f"));
        assert_eq!(pool.take(home, at(61)), Some("e"));
    }

    #[test]
    fn old_connections_are_closed_without_another_call() {
        let (pool, at) = (Pool::new(), times());
        let (here, there) = (home(), home());
        for (name, home, since) in [("a", here, 0), ("b", here, 30), ("c", there, 1)] {
            pool.put(name, home, at(since));
        }
        pool.close_expired(at(55));
        assert_eq!(pool.len(), 3);
        pool.close_expired(at(57));
        assert_eq!((pool.take(here, at(57)), pool.len()), (Some("b"), 0));
        pool.close_expired(at(57));
    }

    #[test]
    fn a_full_pool_closes_what_comes_back() {
        let (pool, home, at) = (Pool::new(), home(), times());
        for number in 0..IDLE_CONNECTIONS_MAX + 5 {
            pool.put(number, home, at(0));
        }
        assert_eq!(pool.len(), IDLE_CONNECTIONS_MAX);
    }
}
