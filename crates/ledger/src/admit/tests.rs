use super::*;

const NOON: UnixMs = UnixMs::new(1_700_000_000_000);

/// No debt is allowed, because the calls of these tests have no exposure.
const NO_DEBT: Micro = Micro::ZERO;

fn wallet(balance: i64) -> Wallet {
    Wallet {
        balance: Micro::new(balance),
        ..Wallet::default()
    }
}

fn key() -> Key {
    Key {
        enabled: true,
        ..Key::default()
    }
}

fn reservation(hold: i64, tokens: u64) -> Reservation {
    Reservation {
        hold: Micro::new(hold),
        exposure: Micro::ZERO,
        tokens,
        counts_in_flight: true,
    }
}

#[test]
fn a_hold_that_grows_takes_over_what_was_exposed() {
    // Each case lists hold and exposure three times: before, added, after.
    for (before, more, after) in [
        ((100, 900), (400, 0), (500, 500)),
        ((100, 900), (1_000, 0), (1_100, 0)),
        // An unexpected tool call raises the worst case and is held at once.
        ((100, 900), (10_400, 10_000), (10_500, 500)),
        ((100, 0), (10_000, 10_000), (10_100, 0)),
    ] {
        let of = |(hold, exposure): (i64, i64)| Reservation {
            exposure: Micro::new(exposure),
            ..reservation(hold, 0)
        };
        let grown = of(before).extended(&of(more)).unwrap();
        assert_eq!(
            (grown.hold.get(), grown.exposure.get()),
            after,
            "{before:?} {more:?}"
        );
    }
}

#[test]
fn a_covering_reservation_covers_both_and_no_more() {
    let of = |(hold, exposure): (i64, i64)| Reservation {
        exposure: Micro::new(exposure),
        ..reservation(hold, 0)
    };
    for (one, other, both) in [
        ((100, 900), (50, 20), (100, 900)),
        ((100, 0), (50, 20), (100, 0)),
        ((100, 0), (50, 80), (100, 30)),
        ((100, 900), (500, 900), (500, 900)),
        ((i64::MAX, 0), (1, i64::MAX), (i64::MAX, 0)),
    ] {
        let found = of(one).covering_both(&of(other));
        assert_eq!((found.hold.get(), found.exposure.get()), both);
        assert_eq!(of(other).covering_both(&of(one)), found);
    }
    let tokens = reservation(1, 7).covering_both(&reservation(2, 5));
    assert_eq!(tokens.tokens, 7);
}

#[test]
fn a_request_that_fits_takes_everything_at_once() {
    let (mut wallet, mut key) = (
        wallet(100),
        Key {
            limit: Some(Micro::new(60)),
            rpm_limit: Some(10),
            tpm_limit: Some(600),
            concurrency_limit: Some(1),
            ..key()
        },
    );
    let rates = admit(&mut wallet, &mut key, &reservation(60, 100), NO_DEBT, NOON).unwrap();
    let requests = Rate {
        limit: 10,
        remaining: 9,
        reset_ms: 6_000,
    };
    let tokens = Rate {
        limit: 600,
        remaining: 500,
        reset_ms: 10_000,
    };
    assert_eq!(rates.requests, Some(requests));
    assert_eq!(rates.tokens, Some(tokens));
    assert_eq!(
        (wallet.frozen, key.frozen),
        (Micro::new(60), Micro::new(60))
    );
    assert_eq!(key.open_holds, 1);
    assert_eq!(rates, Rates::of(&key, NOON));
}

#[test]
fn each_limit_alone_refuses_and_changes_nothing() {
    type Set = fn(&mut Wallet, &mut Key);
    let no_money: Set = |wallet, _| wallet.frozen = Micro::new(41);
    let cases: [(Set, Refusal); 14] = [
        (
            |wallet, _| wallet.status = WalletStatus::Disabled,
            Refusal::WalletDisabled,
        ),
        (|_, key| key.enabled = false, Refusal::KeyDisabled),
        (|_, key| key.expires_at = Some(NOON), Refusal::KeyExpired),
        (no_money, Refusal::InsufficientQuota),
        (
            |_, key| key.limit = Some(Micro::new(59)),
            Refusal::KeyLimitReached,
        ),
        (
            |_, key| {
                key.limit = Some(Micro::new(100));
                key.usage = Micro::new(20);
                key.frozen = Micro::new(21);
            },
            Refusal::KeyLimitReached,
        ),
        (
            |_, key| key.rpm_limit = Some(0),
            Refusal::RequestRate {
                retry_after_ms: 60_000,
            },
        ),
        (
            |_, key| {
                key.rpm_limit = Some(2);
                key.rpm.force(2, 2, NOON);
            },
            Refusal::RequestRate {
                retry_after_ms: 30_000,
            },
        ),
        (
            |_, key| key.tpm_limit = Some(99),
            Refusal::TokenRate {
                retry_after_ms: None,
            },
        ),
        (
            |_, key| {
                key.tpm_limit = Some(100);
                key.tpm.force(1, 100, NOON);
            },
            Refusal::TokenRate {
                retry_after_ms: Some(600),
            },
        ),
        (
            |_, key| key.concurrency_limit = Some(0),
            Refusal::Concurrency,
        ),
        (
            |_, key| {
                key.concurrency_limit = Some(3);
                key.open_holds = 3;
            },
            Refusal::Concurrency,
        ),
        (|_, key| key.open_holds = u32::MAX, Refusal::Concurrency),
        // The last limit refuses after the others have passed.
        (
            |_, key| {
                key.rpm_limit = Some(10);
                key.tpm_limit = Some(1_000);
                key.concurrency_limit = Some(0);
            },
            Refusal::Concurrency,
        ),
    ];
    for (set, refusal) in cases {
        let (mut wallet, mut key) = (wallet(100), key());
        set(&mut wallet, &mut key);
        let before = (wallet, key);
        let refused = admit(&mut wallet, &mut key, &reservation(60, 100), NO_DEBT, NOON);
        assert_eq!(refused, Err(refusal));
        assert_eq!((wallet, key), before, "{refusal}");
    }
}

#[test]
fn limits_that_are_just_met_admit() {
    let mut key = Key {
        expires_at: Some(NOON.plus_ms(1)),
        limit: Some(Micro::new(100)),
        usage: Micro::new(20),
        frozen: Micro::new(20),
        rpm_limit: Some(1),
        tpm_limit: Some(100),
        concurrency_limit: Some(4),
        open_holds: 3,
        ..key()
    };
    let mut wallet = Wallet {
        balance: Micro::new(30),
        gift_balance: Micro::new(20),
        credit_limit: Micro::new(40),
        credit_used: Micro::new(10),
        frozen: Micro::new(20),
        exposed: Micro::ZERO,
        status: WalletStatus::Active,
    };
    assert!(admit(&mut wallet, &mut key, &reservation(60, 100), NO_DEBT, NOON).is_ok());
}

#[test]
fn a_wallet_funded_for_seven_admits_seven() {
    let (mut wallet, mut key) = (wallet(7 * 60 + 59), key());
    let admitted = (0..200)
        .filter(|_| admit(&mut wallet, &mut key, &reservation(60, 100), NO_DEBT, NOON).is_ok())
        .count();
    assert_eq!(admitted, 7);
    assert_eq!(wallet.total_available(), Micro::new(59));
}

#[test]
fn an_unusable_key_is_reported_before_its_wallet() {
    let (mut wallet, mut key) = (wallet(0), Key::default());
    wallet.status = WalletStatus::Disabled;
    let refused = admit(&mut wallet, &mut key, &reservation(1, 1), NO_DEBT, NOON);
    assert_eq!(refused, Err(Refusal::KeyDisabled));
}

#[test]
fn a_task_is_not_a_request_in_flight() {
    let (mut wallet, mut key) = (
        wallet(100),
        Key {
            concurrency_limit: Some(0),
            ..key()
        },
    );
    let task = Reservation {
        counts_in_flight: false,
        ..reservation(60, 0)
    };
    assert!(admit(&mut wallet, &mut key, &task, NO_DEBT, NOON).is_ok());
    assert_eq!((key.open_holds, key.frozen), (0, Micro::new(60)));
}

#[test]
fn a_free_request_needs_no_credits_but_is_refused_above_a_limit() {
    let (mut wallet, mut key) = (wallet(0), key());
    assert!(admit(&mut wallet, &mut key, &reservation(0, 0), NO_DEBT, NOON).is_ok());
    key.limit = Some(Micro::new(5));
    key.usage = Micro::new(6);
    let refused = admit(&mut wallet, &mut key, &reservation(0, 0), NO_DEBT, NOON);
    assert_eq!(refused, Err(Refusal::KeyLimitReached));
}

#[test]
fn a_hold_below_zero_is_refused() {
    for hold in [-1, i64::MIN] {
        let (mut wallet, mut key) = (wallet(100), key());
        let refused = admit(&mut wallet, &mut key, &reservation(hold, 0), NO_DEBT, NOON);
        assert_eq!(refused, Err(Refusal::InsufficientQuota));
        assert_eq!(wallet.frozen, Micro::ZERO);
    }
}

#[test]
fn growth_asks_for_money_alone() {
    // The key and its wallet are disabled, and the key's rate and concurrency are used up.
    let mut wallet = Wallet {
        status: WalletStatus::Disabled,
        ..wallet(100)
    };
    let mut key = Key {
        limit: Some(Micro::new(80)),
        rpm_limit: Some(0),
        tpm_limit: Some(100),
        concurrency_limit: Some(0),
        ..Key::default()
    };
    let nothing = Reservation::NOTHING;
    extend(
        &mut wallet,
        &mut key,
        &nothing,
        &reservation(60, 150),
        NO_DEBT,
        NOON,
    )
    .unwrap();
    assert_eq!(
        (wallet.frozen, key.frozen),
        (Micro::new(60), Micro::new(60))
    );
    assert_eq!(key.open_holds, 0);
    // The bucket has counted the output too: it is 50 tokens over the limit, and one more token is
    // requested.
    let wait = key.tpm.take(1, 100, NOON);
    assert_eq!(wait, Err(Wait::Ms(30_600)));

    for (limit, refusal) in [
        (None, Refusal::InsufficientQuota),
        (Some(Micro::new(80)), Refusal::KeyLimitReached),
    ] {
        key.limit = limit;
        let before = (wallet, key);
        let hold = if limit.is_none() { 41 } else { 21 };
        let refused = extend(
            &mut wallet,
            &mut key,
            &nothing,
            &reservation(hold, 1),
            NO_DEBT,
            NOON,
        );
        assert_eq!(refused, Err(refusal));
        assert_eq!((wallet, key), before);
    }
}
