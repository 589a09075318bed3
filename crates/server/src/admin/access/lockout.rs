//! Refuses addresses that guess tokens, codes or sessions.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::Digest;

/// The number of wrong guesses within [`WINDOW`] that locks an address out.
const WRONG_MAX: u32 = 10;
/// The period in which wrong guesses are counted, and the duration of a lockout.
const WINDOW: Duration = Duration::from_secs(60);
/// The maximum number of tracked addresses. Above it, expired addresses are removed, or else the oldest one.
const ADDRESSES_MAX: usize = 4096;

/// Counts wrong tokens, codes and session cookies by address.
#[derive(Debug, Default)]
pub(crate) struct Lockout {
    guesses: Mutex<HashMap<IpAddr, Guesses>>,
}

/// The wrong guesses of one address. `since` is when counting began, or when the address was locked out.
#[derive(Debug, Clone)]
struct Guesses {
    wrong: u32,
    since: Instant,
    /// The distinct wrong cookies among the guesses, [`WRONG_MAX`] at most.
    cookies: Vec<Digest>,
}

impl Guesses {
    fn none(since: Instant) -> Self {
        Self {
            wrong: 0,
            since,
            cookies: Vec::new(),
        }
    }
}

impl Lockout {
    /// The remaining time of a lockout, during which the address is refused even with a valid token.
    pub(crate) fn remaining(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let guesses = self.guesses.lock();
        let found = guesses.get(&address).filter(|it| it.wrong >= WRONG_MAX)?;
        let left = WINDOW.checked_sub(now.saturating_duration_since(found.since))?;
        (!left.is_zero()).then_some(left)
    }

    /// Counts a wrong token or code.
    pub(crate) fn note_wrong(&self, address: IpAddr, now: Instant) {
        self.note(address, now, None);
    }

    /// Counts a wrong session cookie. Each cookie counts once, because a browser keeps sending the cookie of a session
    /// that has ended. An attacker who guesses sends a different cookie each time.
    pub(crate) fn note_wrong_cookie(&self, address: IpAddr, cookie: Digest, now: Instant) {
        self.note(address, now, Some(cookie));
    }

    fn note(&self, address: IpAddr, now: Instant, cookie: Option<Digest>) {
        let mut guesses = self.guesses.lock();
        if guesses.len() >= ADDRESSES_MAX && !guesses.contains_key(&address) {
            guesses.retain(|_, it| now.saturating_duration_since(it.since) < WINDOW);
            if guesses.len() >= ADDRESSES_MAX
                && let Some(oldest) = guesses.iter().min_by_key(|(_, it)| it.since)
            {
                let oldest = *oldest.0;
                guesses.remove(&oldest);
            }
        }
        let found = guesses.entry(address).or_insert_with(|| Guesses::none(now));
        if now.saturating_duration_since(found.since) >= WINDOW {
            *found = Guesses::none(now);
        }
        if let Some(cookie) = cookie {
            if found.wrong >= WRONG_MAX || found.cookies.contains(&cookie) {
                return;
            }
            found.cookies.push(cookie);
        }
        found.wrong = found.wrong.saturating_add(1);
        if found.wrong == WRONG_MAX {
            found.since = now;
            tracing::warn!(%address, "an address is locked out of the admin API for a minute: too many wrong tokens");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from(n).into()
    }

    #[test]
    fn ten_wrong_tokens_within_a_minute_lock_an_address_out_for_a_minute() {
        let (lockout, start) = (Lockout::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for _ in 0..9 {
            lockout.note_wrong(address(1), at(0));
        }
        assert_eq!(lockout.remaining(address(1), at(1)), None);
        // The minute is over, so earlier guesses no longer count.
        lockout.note_wrong(address(1), at(60));
        assert_eq!(lockout.remaining(address(1), at(60)), None);
        for _ in 0..9 {
            lockout.note_wrong(address(1), at(70));
        }
        assert_eq!(
            lockout.remaining(address(1), at(71)),
            Some(Duration::from_secs(59))
        );
        assert_eq!(lockout.remaining(address(2), at(71)), None);
        assert_eq!(lockout.remaining(address(1), at(130)), None);
        lockout.note_wrong(address(1), at(130));
        assert_eq!(lockout.remaining(address(1), at(130)), None);
    }

    #[test]
    fn a_cookie_counts_once_and_ten_different_ones_lock_an_address_out() {
        let (lockout, now) = (Lockout::default(), Instant::now());
        let cookie = |n: u32| Digest::of(&n.to_be_bytes());
        for _ in 0..50 {
            lockout.note_wrong_cookie(address(1), cookie(0), now);
        }
        for n in 1..9 {
            lockout.note_wrong_cookie(address(1), cookie(n), now);
        }
        assert_eq!(lockout.remaining(address(1), now), None);
        lockout.note_wrong_cookie(address(1), cookie(9), now);
        assert_eq!(lockout.remaining(address(1), now), Some(WINDOW));
        // Wrong cookies and wrong tokens are counted together.
        for n in 0..9 {
            lockout.note_wrong_cookie(address(2), cookie(n), now);
        }
        lockout.note_wrong(address(2), now);
        assert_eq!(lockout.remaining(address(2), now), Some(WINDOW));
        for n in 10..1_000 {
            lockout.note_wrong_cookie(address(2), cookie(n), now);
        }
        let guesses = lockout.guesses.lock();
        assert!(guesses[&address(2)].cookies.len() < 10);
    }

    #[test]
    fn the_memory_is_bounded_and_forgets_the_oldest() {
        let (lockout, start) = (Lockout::default(), Instant::now());
        for n in 0..6000 {
            lockout.note_wrong(address(n), start + Duration::from_millis(u64::from(n)));
        }
        let guesses = lockout.guesses.lock();
        assert_eq!(guesses.len(), ADDRESSES_MAX);
        assert!(guesses.contains_key(&address(5999)) && !guesses.contains_key(&address(0)));
    }
}
