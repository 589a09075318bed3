//! Limits the requests of one actor.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Above this number of buckets, full ones are removed. Only authenticated actors have buckets, so this is rare.
const ACTORS_MAX: usize = 4096;

/// A token bucket for each actor, which holds one minute's worth of requests.
#[derive(Debug)]
pub(crate) struct RateLimit {
    per_minute: u32,
    /// When the bucket of each actor is full again.
    full_at: Mutex<HashMap<String, Instant>>,
}

impl RateLimit {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self {
            per_minute: per_minute.max(1),
            full_at: Mutex::default(),
        }
    }

    /// Takes one request from the actor's bucket. If the bucket is empty, returns how long to wait.
    pub(crate) fn take(&self, actor: &str, now: Instant) -> Result<(), Duration> {
        const MINUTE: Duration = Duration::from_secs(60);
        let one = MINUTE / self.per_minute;
        let mut full_at = self.full_at.lock();
        if full_at.len() >= ACTORS_MAX {
            full_at.retain(|_, full| *full > now);
        }
        let full = match full_at.get(actor) {
            Some(full) => (*full).max(now),
            None => now,
        };
        let next = full + one;
        let ahead = next.saturating_duration_since(now);
        if ahead > MINUTE {
            return Err(ahead.saturating_sub(MINUTE));
        }
        full_at.insert(actor.to_owned(), next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_has_a_minute_s_worth_and_gets_it_back_over_time() {
        let (limit, start) = (RateLimit::new(60), Instant::now());
        for _ in 0..60 {
            assert_eq!(limit.take("a", start), Ok(()));
        }
        assert_eq!(limit.take("a", start), Err(Duration::from_secs(1)));
        assert_eq!(limit.take("b", start), Ok(()));
        let later = start + Duration::from_secs(2);
        assert_eq!(limit.take("a", later), Ok(()));
        assert_eq!(limit.take("a", later), Ok(()));
        assert!(limit.take("a", later).is_err());
    }
}
