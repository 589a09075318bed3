//! Tests of the debt limit: no interleaving of calls takes a wallet further below its credit line than the debt limit.
//! Each call costs at most its stated worst case.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use ledger::{
    Key, Micro, Refusal, Reservation, Step, UnixMs, Wallet, admit, extend, release, settle, step,
};
use proptest::prelude::*;

const NOON: UnixMs = UnixMs::new(1_700_000_000_000);

fn call(hold: i64, exposure: i64) -> Reservation {
    Reservation {
        hold: Micro::new(hold),
        exposure: Micro::new(exposure),
        tokens: 0,
        counts_in_flight: true,
    }
}

fn opened(balance: i64, credit_limit: i64) -> (Wallet, Key) {
    let wallet = Wallet {
        balance: Micro::new(balance),
        credit_limit: Micro::new(credit_limit),
        ..Wallet::default()
    };
    let key = Key {
        enabled: true,
        ..Key::default()
    };
    (wallet, key)
}

/// How far the wallet is below its credit line.
fn debt(wallet: &Wallet) -> i64 {
    wallet.credit_used.get() - wallet.credit_limit.get()
}

#[test]
fn the_hold_and_the_worst_case_are_checked_apart() {
    for (balance, line, hold, exposure, debt_limit, expected) in [
        (100, 0, 10, 0, 0, None),
        (100, 0, 10, 90, 0, None),
        (100, 0, 10, 91, 0, Some(Refusal::DebtLimitReached)),
        (100, 0, 10, 91, 1, None),
        (100, 50, 10, 140, 0, None),
        (100, 50, 10, 141, 0, Some(Refusal::DebtLimitReached)),
        // The debt limit does not lend credits: the wallet must cover the hold itself.
        (0, 0, 1, 0, 1_000, Some(Refusal::InsufficientQuota)),
        (0, 0, 0, 0, 0, None),
        (0, 0, 0, 1, 0, Some(Refusal::DebtLimitReached)),
        (0, 0, 0, 1, 1, None),
        (100, 0, 10, i64::MAX, i64::MAX, None),
        (100, 0, 10, -1, 5, Some(Refusal::InsufficientQuota)),
    ] {
        let (mut wallet, mut key) = opened(balance, line);
        let before = (wallet, key);
        let call = call(hold, exposure);
        let limit = Micro::new(debt_limit);
        let refusal = admit(&mut wallet, &mut key, &call, limit, NOON).err();
        assert_eq!(refusal, expected, "{balance} {line} {call:?} {debt_limit}");
        if refusal.is_some() {
            assert_eq!((wallet, key), before);
        } else {
            assert_eq!(wallet.exposed, call.exposure);
        }
    }
}

#[test]
fn growth_within_the_worst_case_asks_for_the_hold_alone() {
    let (mut wallet, mut key) = opened(100, 0);
    let (limit, mut held) = (Micro::new(20), call(10, 110));
    admit(&mut wallet, &mut key, &held, limit, NOON).unwrap();
    // The wallet is at its limit, but the call may still grow to its stated worst case.
    held = extend(&mut wallet, &mut key, &held, &call(60, 0), limit, NOON).unwrap();
    assert_eq!((held.hold, held.exposure), (Micro::new(70), Micro::new(50)));
    assert_eq!((wallet.frozen, wallet.exposed), (held.hold, held.exposure));
    let before = (wallet, key);
    for (more, refusal) in [
        (call(31, 0), Refusal::InsufficientQuota),
        (call(10, 1), Refusal::DebtLimitReached),
    ] {
        let refused = extend(&mut wallet, &mut key, &held, &more, limit, NOON);
        assert_eq!(refused, Err(refusal));
        assert_eq!((wallet, key), before);
    }
    settle(&mut wallet, &mut key, &held, Micro::new(120), None, NOON).unwrap();
    assert_eq!((wallet.exposed, debt(&wallet)), (Micro::ZERO, 20));
}

#[test]
fn an_upstream_that_exceeds_the_worst_case_is_followed_as_far_as_the_limit() {
    let (mut wallet, mut key) = opened(100, 0);
    let (limit, mut held) = (Micro::new(30), call(10, 20));
    admit(&mut wallet, &mut key, &held, limit, NOON).unwrap();
    let other = call(0, 90);
    admit(&mut wallet, &mut key, &other, limit, NOON).unwrap();
    // 130 can be spent in total. 90 are reserved for another call, so this one can reach 40.
    held = extend(&mut wallet, &mut key, &held, &call(30, 0), limit, NOON).unwrap();
    assert_eq!((held.hold, held.exposure), (Micro::new(40), Micro::ZERO));
    let refused = extend(&mut wallet, &mut key, &held, &call(1, 0), limit, NOON);
    assert_eq!(refused, Err(Refusal::DebtLimitReached));
}

#[test]
fn two_hundred_calls_at_once_stay_within_the_limit() {
    let (mut wallet, mut key) = opened(1_000, 0);
    let (call, limit) = (call(40, 1_240), Micro::new(10_000));
    let admitted = (0..200)
        .filter(|_| admit(&mut wallet, &mut key, &call, limit, NOON).is_ok())
        .count();
    assert_eq!(admitted, 8);
    for _ in 0..admitted {
        settle(&mut wallet, &mut key, &call, Micro::new(1_280), None, NOON).unwrap();
    }
    assert_eq!(debt(&wallet), 8 * 1_280 - 1_000);
    assert!(debt(&wallet) <= limit.get());
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Admit(Reservation),
    Extend(usize, Reservation),
    Step(usize, i64),
    /// Closes a call at this percentage of its worst case.
    Settle(usize, i64),
    Release(usize),
    TopUp(i64),
    Gift(i64),
    RaiseLine(i64),
}

fn any_ask() -> impl Strategy<Value = Reservation> {
    (0_i64..200, prop_oneof![Just(0), 0_i64..1_000]).prop_map(|(hold, more)| call(hold, more))
}

fn any_event() -> impl Strategy<Value = Event> {
    let which = || 0_usize..8;
    prop_oneof![
        6 => any_ask().prop_map(Event::Admit),
        3 => (which(), any_ask()).prop_map(|(which, more)| Event::Extend(which, more)),
        3 => (which(), 0_i64..300).prop_map(|(which, used)| Event::Step(which, used)),
        4 => (which(), prop_oneof![Just(100), 0_i64..=100])
            .prop_map(|(which, percent)| Event::Settle(which, percent)),
        1 => which().prop_map(Event::Release),
        2 => (0_i64..500).prop_map(Event::TopUp),
        1 => (0_i64..100).prop_map(Event::Gift),
        1 => (0_i64..50).prop_map(Event::RaiseLine),
    ]
}

/// The open calls, each with the amount that the steps of its session have booked.
type Open = Vec<(Reservation, Micro)>;

fn happen(event: Event, wallet: &mut Wallet, key: &mut Key, open: &mut Open, limit: Micro) {
    match event {
        Event::Admit(call) => {
            if admit(wallet, key, &call, limit, NOON).is_ok() {
                open.push((call, Micro::ZERO));
            }
        }
        Event::Extend(which, more) => {
            if let Some((held, _)) = open.get_mut(which)
                && let Ok(grown) = extend(wallet, key, held, &more, limit, NOON)
            {
                *held = grown;
            }
        }
        Event::Step(which, used) => {
            // A hold without exposure is treated as that of a session.
            let session = open
                .get_mut(which)
                .filter(|(held, _)| held.exposure == Micro::ZERO);
            if let Some((held, booked)) = session {
                let used = Micro::new(booked.get() + used);
                let asked = Step {
                    used,
                    wanted: Micro::new(used.get() + 100),
                    least: used,
                };
                if let Ok(stepped) = step(wallet, key, held, *booked, &asked, limit, NOON) {
                    held.hold = stepped.hold;
                    *booked = booked.checked_add(stepped.charge).unwrap();
                }
            }
        }
        Event::Settle(which, percent) if which < open.len() => {
            let (held, _) = open.swap_remove(which);
            let charge = (held.hold.get() + held.exposure.get()) * percent / 100;
            settle(wallet, key, &held, Micro::new(charge), None, NOON).unwrap();
        }
        Event::Release(which) if which < open.len() => {
            let (held, _) = open.swap_remove(which);
            release(wallet, key, &held, NOON).unwrap();
        }
        Event::Settle(..) | Event::Release(_) => {}
        Event::TopUp(amount) => drop(wallet.top_up(Micro::new(amount)).unwrap()),
        Event::Gift(amount) => drop(wallet.gift(Micro::new(amount)).unwrap()),
        Event::RaiseLine(by) => {
            let line = wallet.credit_limit.checked_add(Micro::new(by)).unwrap();
            wallet.set_credit_limit(line).unwrap();
        }
    }
}

proptest! {
    /// Runs any events in any order and then lets every open call cost its worst case.
    #[test]
    fn no_wallet_falls_further_than_the_debt_limit(
        events in prop::collection::vec(any_event(), 1..150),
        limit in 0_i64..2_000,
        line in 0_i64..300,
    ) {
        let (mut wallet, mut key) = opened(0, line);
        let (mut open, micro) = (Open::new(), Micro::new(limit));
        let mut paid = 0;
        for event in events {
            if let Event::TopUp(amount) | Event::Gift(amount) = event {
                paid += amount;
            }
            happen(event, &mut wallet, &mut key, &mut open, micro);
            prop_assert!(debt(&wallet) <= limit);
            // The sum of the charges can overflow only if the sum of the payments is nearly as large.
            prop_assert!(key.usage.get() <= paid + wallet.credit_limit.get() + limit);
            let exposed: i64 = open.iter().map(|(held, _)| held.exposure.get()).sum();
            prop_assert_eq!(wallet.exposed.get(), exposed);
        }
        while !open.is_empty() {
            happen(Event::Settle(0, 100), &mut wallet, &mut key, &mut open, micro);
            prop_assert!(debt(&wallet) <= limit);
        }
        prop_assert_eq!((wallet.frozen, wallet.exposed), (Micro::ZERO, Micro::ZERO));
    }
}
