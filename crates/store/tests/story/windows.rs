//! Tests spending limits for each day, week or month.
//!
//! `SQLite` takes the time of each call from its caller; with `PostgreSQL` it is the database's time. A test sets both,
//! so that it can take place at midnight.

use ledger::{HOUR_MS, Micro, Refusal, UnixMs};
use store::{
    Admit, AdmitError, AdmittedCall, Calendar, Close, KeyChange, KeyLimits, KeyRow, KeyWindow,
    PeriodLength, PriceVersion, Rule, Store,
};

use crate::test_database::{
    TestDatabase, actor, admission, ask, assert_clean, credits, key, price, released, settled,
    wallet,
};

/// Midnight on 2035-03-25 in Berlin, a day with 23 hours. It is far in the future, because a read of a key begins a new
/// period if the stored period has ended by the real time.
const BERLIN: UnixMs = UnixMs::new(2_058_390_000_000);

pub(crate) fn window(amount: i64, per: PeriodLength, zone: &str) -> KeyWindow {
    KeyWindow {
        amount: credits(amount),
        calendar: Calendar::new(per, zone).unwrap(),
    }
}

fn limits(amount: i64, per: PeriodLength, zone: &str) -> KeyLimits {
    KeyLimits {
        window: Some(window(amount, per, zone)),
        ..KeyLimits::default()
    }
}

async fn admit_at(
    database: &TestDatabase,
    store: &Store,
    key: &KeyRow,
    hold: Micro,
    now: UnixMs,
) -> Result<AdmittedCall, AdmitError> {
    database.set_clock(now);
    let admission = admission(key, ask(hold));
    store.admit(Admit { now, ..admission }).await
}

async fn settle_at(
    database: &TestDatabase,
    store: &Store,
    call: &AdmittedCall,
    version: PriceVersion,
    charge: Micro,
    now: UnixMs,
) {
    database.set_clock(now);
    let tokens = u64::try_from(charge.get()).unwrap();
    let close = settled(call.hold, version, tokens);
    store.close(Close { now, ..close });
    store.flush().await.unwrap();
}

/// Makes a call that costs as much as it holds.
async fn spend(
    database: &TestDatabase,
    store: &Store,
    key: &KeyRow,
    amount: Micro,
    now: UnixMs,
) -> Result<(), Refusal> {
    let version = price(store).await;
    match admit_at(database, store, key, amount, now).await {
        Ok(call) => {
            settle_at(database, store, &call, version, amount, now).await;
            Ok(())
        }
        Err(AdmitError::Refused { refusal, .. }) => Err(refusal),
        Err(error) => panic!("{error:?}"),
    }
}

async fn used(store: &Store, key: &KeyRow) -> (Micro, UnixMs) {
    let row = store.find_key(&key.id).await.unwrap().unwrap();
    let period = row.key.window.unwrap().period;
    (row.key.window_usage(), period.ends_at)
}

pub(crate) async fn a_window_is_exact_at_midnight_of_its_zone(database: &TestDatabase) {
    for (per, zone, midnight, hours) in [
        // The same moment is midnight in Berlin, and half past four in Kolkata.
        (PeriodLength::Day, "Europe/Berlin", BERLIN, 23),
        (PeriodLength::Day, "UTC", BERLIN.plus_ms(HOUR_MS), 24),
        (
            PeriodLength::Day,
            "Asia/Kolkata",
            BERLIN.minus_ms(9 * HOUR_MS / 2),
            24,
        ),
        (
            PeriodLength::Day,
            "America/New_York",
            BERLIN.plus_ms(5 * HOUR_MS),
            24,
        ),
        // 2035-03-26 is a Monday, and 2035-04-01 the first of a month. Both have daylight saving time.
        (
            PeriodLength::Week,
            "Europe/Berlin",
            BERLIN.plus_ms(23 * HOUR_MS),
            7 * 24,
        ),
        (
            PeriodLength::Month,
            "Europe/Berlin",
            BERLIN.plus_ms((7 * 24 - 1) * HOUR_MS),
            30 * 24,
        ),
    ] {
        let database = TestDatabase::like(database);
        let before = midnight.minus_ms(1);
        database.set_clock(before);
        let store = database.open();
        let account = wallet(&store, "acme", credits(100)).await;
        let key = key(&store, account.id, limits(10, per, zone)).await;
        let refused = Err(Refusal::KeyLimitReached);
        for (amount, now, expected, in_window) in [
            (6, before, Ok(()), 6),
            (5, before, refused, 6),
            (4, before, Ok(()), 10),
            (1, before, refused, 10),
            (7, midnight, Ok(()), 7),
            (4, midnight, refused, 7),
            (3, midnight.plus_ms(1), Ok(()), 10),
        ] {
            let spent = spend(&database, &store, &key, credits(amount), now).await;
            assert_eq!(spent, expected, "{amount} per {per} in {zone}");
            assert_eq!(used(&store, &key).await.0, credits(in_window), "{zone}");
        }
        let end = midnight.plus_ms(hours * HOUR_MS);
        assert_eq!(used(&store, &key).await.1, end, "{per} in {zone}");
        assert_clean(&store).await;
    }
}

pub(crate) async fn a_hold_over_midnight_counts_where_it_is_booked(database: &TestDatabase) {
    database.set_clock(BERLIN.minus_ms(1));
    let store = database.open();
    let version = price(&store).await;
    let account = wallet(&store, "acme", credits(100)).await;
    let key = key(
        &store,
        account.id,
        limits(10, PeriodLength::Day, "Europe/Berlin"),
    )
    .await;
    let before = BERLIN.minus_ms(1);
    let call = admit_at(database, &store, &key, credits(8), before)
        .await
        .unwrap();
    // An amount that is still held at midnight counts against the new day, and so does the charge when that call
    // settles.
    let refused = spend(database, &store, &key, credits(3), BERLIN).await;
    assert_eq!(refused, Err(Refusal::KeyLimitReached));
    settle_at(database, &store, &call, version, credits(5), BERLIN).await;
    assert_eq!(used(&store, &key).await.0, credits(5));
    spend(database, &store, &key, credits(5), BERLIN)
        .await
        .unwrap();
    assert_eq!(used(&store, &key).await.0, credits(10));
    let other = spend(database, &store, &key, Micro::new(1), BERLIN).await;
    assert_eq!(other, Err(Refusal::KeyLimitReached));
    assert_clean(&store).await;
    // Nothing is lost in a restart.
    drop(store);
    let store = database.open();
    assert_eq!(used(&store, &key).await.0, credits(10));
    let other = spend(database, &store, &key, Micro::new(1), BERLIN).await;
    assert_eq!(other, Err(Refusal::KeyLimitReached));
}

pub(crate) async fn a_window_can_be_set_changed_and_lifted(database: &TestDatabase) {
    database.set_clock(BERLIN);
    let store = database.open();
    let account = wallet(&store, "acme", credits(100)).await;
    let key = key(&store, account.id, KeyLimits::default()).await;
    let change = async |window| {
        let change = KeyChange {
            window: Some(window),
            ..KeyChange::default()
        };
        store.update_key(key.id, change, &actor()).await
    };
    spend(database, &store, &key, credits(5), BERLIN)
        .await
        .unwrap();
    // Charges from before the window was set do not count.
    let row = change(Some(window(10, PeriodLength::Day, "UTC")))
        .await
        .unwrap();
    assert_eq!(
        row.calendar,
        Some(window(10, PeriodLength::Day, "UTC").calendar)
    );
    spend(database, &store, &key, credits(8), BERLIN)
        .await
        .unwrap();
    assert_eq!(used(&store, &key).await.0, credits(8));
    // Another amount applies at once, and earlier charges still count.
    change(Some(window(9, PeriodLength::Day, "UTC")))
        .await
        .unwrap();
    let refused = spend(database, &store, &key, credits(2), BERLIN).await;
    assert_eq!(refused, Err(Refusal::KeyLimitReached));
    change(Some(window(11, PeriodLength::Day, "UTC")))
        .await
        .unwrap();
    spend(database, &store, &key, credits(3), BERLIN)
        .await
        .unwrap();
    assert_eq!(used(&store, &key).await.0, credits(11));
    // Another period length begins a new period.
    change(Some(window(11, PeriodLength::Month, "UTC")))
        .await
        .unwrap();
    spend(database, &store, &key, credits(1), BERLIN)
        .await
        .unwrap();
    assert_eq!(used(&store, &key).await.0, credits(1));
    assert_clean(&store).await;
    change(None).await.unwrap();
    spend(database, &store, &key, credits(50), BERLIN)
        .await
        .unwrap();
    let row = store.find_key(&key.id).await.unwrap().unwrap();
    assert_eq!((row.key.window, row.calendar), (None, None));
    assert_eq!(row.key.limit_remaining(), None);
    assert_clean(&store).await;
    let negative = KeyWindow {
        amount: Micro::new(-1),
        ..window(1, PeriodLength::Day, "UTC")
    };
    assert!(change(Some(negative)).await.is_err());
}

pub(crate) async fn a_forged_window_is_found(database: &TestDatabase) {
    database.set_clock(BERLIN);
    let store = database.open();
    let account = wallet(&store, "acme", credits(100)).await;
    let key = key(&store, account.id, limits(10, PeriodLength::Day, "UTC")).await;
    spend(database, &store, &key, credits(7), BERLIN)
        .await
        .unwrap();
    let next_day = BERLIN.plus_ms(24 * HOUR_MS);
    drop(store);
    database.set_clock(next_day);
    let store = database.open();
    spend(database, &store, &key, credits(7), next_day)
        .await
        .unwrap();
    assert_clean(&store).await;
    database.tamper(database.sql_for(
        "UPDATE key_states SET window_before = window_before + 1",
        "UPDATE keys SET window_before = window_before + 1",
    ));
    let report = store.verify().await.unwrap();
    let [difference] = &report.differences[..] else {
        panic!("{:#?}", report.differences);
    };
    assert_eq!(difference.rule, Rule::V5Usage);
    let expected = (credits(7).get(), credits(7).get() + 1);
    let expected = (expected.0.to_string(), expected.1.to_string());
    assert_eq!(
        (difference.expected.clone(), difference.found.clone()),
        expected
    );
}

/// A clock that was years ahead does not lock a key for years. This can only be tested where time is an argument.
pub(crate) async fn a_clock_that_was_far_ahead_does_not_keep_its_period(database: &TestDatabase) {
    let store = database.open();
    let account = wallet(&store, "acme", credits(100)).await;
    let key = key(&store, account.id, limits(10, PeriodLength::Day, "UTC")).await;
    let ahead = BERLIN.plus_ms(400 * 24 * HOUR_MS);
    spend(database, &store, &key, credits(10), ahead)
        .await
        .unwrap();
    // A slightly earlier time belongs to the same day, because calls are decided slightly out of order.
    let early = spend(database, &store, &key, credits(1), ahead.minus_ms(3_000)).await;
    assert_eq!(early, Err(Refusal::KeyLimitReached));
    spend(database, &store, &key, credits(10), BERLIN)
        .await
        .unwrap();
    let again = spend(database, &store, &key, credits(1), BERLIN).await;
    assert_eq!(again, Err(Refusal::KeyLimitReached));
    assert_clean(&store).await;
}

pub(crate) async fn a_window_is_exact_on_three_nodes(database: &TestDatabase) {
    let before = BERLIN.minus_ms(1);
    database.set_clock(before);
    let nodes = [database.open(), database.open(), database.open()];
    let version = price(&nodes[0]).await;
    let account = wallet(&nodes[0], "acme", credits(1_000)).await;
    let key = key(
        &nodes[0],
        account.id,
        limits(7, PeriodLength::Day, "Europe/Berlin"),
    )
    .await;
    // All calls of the first day are settled. On the second day one hold is released, so that one more call fits.
    for (now, most) in [(before, 7), (BERLIN, 7), (BERLIN.plus_ms(1), 1)] {
        database.set_clock(now);
        let mut calls = tokio::task::JoinSet::new();
        for n in 0..60 {
            let (store, key) = (nodes[n % nodes.len()].clone(), key.clone());
            calls.spawn(async move {
                let admission = admission(&key, ask(credits(1)));
                (n, store.admit(Admit { now, ..admission }).await)
            });
        }
        let mut admitted = Vec::new();
        while let Some(call) = calls.join_next().await {
            match call.unwrap() {
                (n, Ok(call)) => admitted.push((n, call)),
                (_, Err(AdmitError::Refused { refusal, .. })) => {
                    assert_eq!(refusal, Refusal::KeyLimitReached);
                }
                (_, Err(error)) => panic!("{error:?}"),
            }
        }
        assert_eq!(admitted.len(), most, "at {now:?}");
        let (last, rest) = admitted.split_last().unwrap();
        for (n, call) in rest {
            let close = settled(call.hold, version, 1_000_000);
            nodes[n % nodes.len()].close(Close { now, ..close });
        }
        let (n, call) = last;
        let close = if now == before {
            settled(call.hold, version, 1_000_000)
        } else {
            released(call.hold)
        };
        nodes[n % nodes.len()].close(Close { now, ..close });
        for node in &nodes {
            node.flush().await.unwrap();
        }
    }
    assert_eq!(used(&nodes[1], &key).await.0, credits(6));
    assert_clean(&nodes[2]).await;
}
