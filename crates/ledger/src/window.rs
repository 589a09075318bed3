//! A spending limit per calendar period, such as a day.
//!
//! The periods follow each other without a gap. A charge counts in the period in which it is booked. The window stores
//! the key's total charges at the start of the period. So a charge does not change the window, and a new period only
//! needs new starting values. The end of a period is an argument: calendars and time zones are in
//! `store/src/records/calendar.rs`.

use crate::micro::Micro;
use crate::time::UnixMs;
use crate::wallet::to_i128;

/// A spending limit per period, and the current period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// The maximum that may be charged in one period.
    pub amount: Micro,
    /// The total charges of the key when the period began.
    pub usage_before: Micro,
    /// The current period.
    pub period: Period,
}

/// A period of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    /// The first moment after the period. The default is long past, which means that no period has
    /// begun.
    pub ends_at: UnixMs,
    /// The number of entries that the wallet had when the period began. Later entries count in the
    /// period.
    pub entries_before: i64,
}

impl Window {
    /// A window whose first period begins with the next decision.
    pub const fn new(amount: Micro) -> Self {
        Self {
            amount,
            usage_before: Micro::ZERO,
            period: Period {
                ends_at: UnixMs::new(0),
                entries_before: 0,
            },
        }
    }

    /// Whether the period is over. A clock that is set back does not reopen an earlier period.
    pub(crate) fn is_over(&self, now: UnixMs) -> bool {
        now >= self.period.ends_at
    }

    /// The charges in the period, for a key that has been charged `usage` in total.
    pub(crate) fn spent(&self, usage: Micro) -> i128 {
        to_i128(usage) - to_i128(self.usage_before)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::admit::{Refusal, Reservation, admit};
    use crate::close::{release, settle};
    use crate::key::Key;
    use crate::wallet::Wallet;

    /// A key that may spend 100 in each period, of a wallet with plenty of credits.
    fn rows() -> (Wallet, Key) {
        let wallet = Wallet {
            balance: Micro::new(1_000_000),
            ..Wallet::default()
        };
        let key = Key {
            enabled: true,
            window: Some(Window::new(Micro::new(100))),
            ..Key::default()
        };
        (wallet, key)
    }

    fn ask(hold: i64) -> Reservation {
        Reservation {
            hold: Micro::new(hold),
            exposure: Micro::ZERO,
            tokens: 0,
            counts_in_flight: true,
        }
    }

    /// Begins a new period when one is due. Periods are ten milliseconds long.
    fn roll(key: &mut Key, now: i64) {
        if key.needs_period(UnixMs::new(now)) {
            let ends_at = UnixMs::new((now / 10 + 1) * 10);
            key.begin_period(Period {
                ends_at,
                entries_before: 0,
            });
        }
    }

    #[test]
    fn a_period_admits_its_amount_and_the_next_one_admits_it_again() {
        let (mut wallet, mut key) = rows();
        let debt = Micro::ZERO;
        for begins_at in [100, 110, 170] {
            for (at, hold, expected) in [
                (0, 60, Ok(())),
                (5, 41, Err(Refusal::KeyLimitReached)),
                (9, 40, Ok(())),
                (9, 1, Err(Refusal::KeyLimitReached)),
            ] {
                let now = UnixMs::new(begins_at + at);
                roll(&mut key, now.get());
                let ask = ask(hold);
                let admitted = admit(&mut wallet, &mut key, &ask, debt, now);
                assert_eq!(admitted.map(|_| ()), expected, "{begins_at} + {at}");
                if expected.is_ok() {
                    settle(&mut wallet, &mut key, &ask, ask.hold, None, now).unwrap();
                }
            }
            assert_eq!(key.window_usage(), Micro::new(100));
            assert_eq!(key.limit_remaining(), Some(Micro::ZERO));
        }
        assert_eq!(key.usage, Micro::new(300));
    }

    #[test]
    fn a_hold_of_the_last_period_counts_in_the_next_one() {
        let (mut wallet, mut key) = rows();
        roll(&mut key, 109);
        let (held, now) = (ask(70), UnixMs::new(110));
        let debt = Micro::ZERO;
        admit(&mut wallet, &mut key, &held, debt, UnixMs::new(109)).unwrap();
        roll(&mut key, now.get());
        let more = ask(31);
        let refused = admit(&mut wallet, &mut key, &more, debt, now);
        assert_eq!(refused, Err(Refusal::KeyLimitReached));
        settle(&mut wallet, &mut key, &held, Micro::new(50), None, now).unwrap();
        assert_eq!(key.window_usage(), Micro::new(50));
        admit(&mut wallet, &mut key, &ask(50), debt, now).unwrap();
    }

    #[test]
    fn the_smaller_of_two_limits_remains() {
        let (_, mut key) = rows();
        roll(&mut key, 100);
        key.usage = Micro::new(30);
        for (limit, remaining) in [(None, 70), (Some(500), 70), (Some(90), 60), (Some(10), 0)] {
            key.limit = limit.map(Micro::new);
            assert_eq!(key.limit_remaining(), Some(Micro::new(remaining)));
        }
        key.window = None;
        key.limit = None;
        assert_eq!(key.limit_remaining(), None);
    }

    #[test]
    fn a_clock_that_is_set_back_stays_in_the_period() {
        let (_, mut key) = rows();
        roll(&mut key, 100);
        key.usage = Micro::new(30);
        roll(&mut key, 95);
        assert_eq!(key.window_usage(), Micro::new(30));
    }

    /// A call: the pause before it, its hold, its charge, and the time until its hold is closed.
    #[derive(Debug, Clone, Copy)]
    struct Call {
        after: i64,
        hold: i64,
        charge: i64,
        closes_after: i64,
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let call = (0..8_i64, 0..60_i64, 0..80_i64, 0..25_i64);
        let call = call.prop_map(|(after, hold, charge, closes_after)| Call {
            after,
            hold,
            charge,
            closes_after,
        });
        prop::collection::vec(call, 0..60)
    }

    proptest! {
        /// Every decision agrees with a sum over all charges since the period began.
        #[test]
        fn a_window_decides_like_a_sum_over_the_charges_of_its_period(calls in calls()) {
            let (mut wallet, mut key) = rows();
            let mut open: Vec<(i64, Reservation, i64)> = Vec::new();
            let mut charges: Vec<(i64, i64)> = Vec::new();
            let mut now = 1_000;
            for call in calls {
                let next = now + call.after;
                // First close the holds that are due, in order of time.
                open.sort_by_key(|(at, ..)| *at);
                while let Some((at, held, charge)) = open.first().copied() && at <= next {
                    open.remove(0);
                    roll(&mut key, at);
                    let time = UnixMs::new(at);
                    if charge == 0 {
                        release(&mut wallet, &mut key, &held, time).unwrap();
                    } else {
                        settle(&mut wallet, &mut key, &held, Micro::new(charge), None, time).unwrap();
                        charges.push((at, charge));
                    }
                }
                now = next;
                roll(&mut key, now);
                let period = now / 10;
                let spent: i64 = charges.iter().filter(|(at, _)| at / 10 == period).map(|(_, charge)| charge).sum();
                let frozen: i64 = open.iter().map(|(_, held, _)| held.hold.get()).sum();
                prop_assert_eq!(key.window_usage(), Micro::new(spent));
                let fits = spent + frozen + call.hold <= 100;
                let ask = ask(call.hold);
                let admitted = admit(&mut wallet, &mut key, &ask, Micro::ZERO, UnixMs::new(now));
                prop_assert_eq!(admitted.is_ok(), fits, "{} + {} + {}", spent, frozen, call.hold);
                if fits {
                    open.push((now + call.closes_after, ask, call.charge));
                }
            }
        }
    }
}
