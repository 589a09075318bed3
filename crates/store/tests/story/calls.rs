//! Tests calls: admission, extension and close.

use ledger::{Micro, Refusal, Reservation};
use store::{
    Admit, AdmitError, AdmittedCall, Basis, Close, End, Extend, HoldId, KeyChange, KeyLimits,
    KeyRow, PriceVersion, Settings, Store,
};

use crate::test_database::{
    LONG_AGO, NOW, TestDatabase, actor, admission, admit, ask, assert_clean, credits, funded, key,
    price, released, settled, wallet,
};

fn refusal(result: Result<AdmittedCall, AdmitError>) -> Refusal {
    match result {
        Err(AdmitError::Refused { refusal, .. }) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) async fn an_admitted_call_freezes_and_its_settlement_charges(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    let admitted = admit(&store, &key, credits(3)).await.unwrap();
    let (wallet, held) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.balance, wallet.frozen, wallet.total_available()),
        (credits(10), credits(3), credits(7))
    );
    assert_eq!(
        (held.frozen, held.open_holds, held.usage),
        (credits(3), 1, Micro::ZERO)
    );
    assert_clean(&store).await;

    store.close(settled(admitted.hold, version, 1_250_000));
    let (wallet, used) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.balance, wallet.frozen),
        (Micro::new(8_750_000), Micro::ZERO)
    );
    assert_eq!(
        (used.frozen, used.open_holds, used.usage),
        (Micro::ZERO, 0, Micro::new(1_250_000))
    );
    assert_clean(&store).await;
}

pub(crate) async fn every_refusal_consumes_nothing(database: &TestDatabase) {
    let store = database.open();
    let account = wallet(&store, "acme", credits(10)).await;
    let limits = KeyLimits {
        limit: Some(credits(8)),
        rpm: Some(2),
        tpm: Some(1_000),
        concurrency: Some(2),
        expires_at: None,
        ..KeyLimits::default()
    };
    let key = key(&store, account.id, limits).await;
    let first = admit(&store, &key, credits(1)).await.unwrap();
    let before = store.balance(&key.id).await.unwrap();

    let with = |hold, tokens| {
        admission(
            &key,
            Reservation {
                hold,
                exposure: Micro::ZERO,
                tokens,
                counts_in_flight: true,
            },
        )
    };
    assert_eq!(
        refusal(store.admit(with(credits(10), 0)).await),
        Refusal::InsufficientQuota
    );
    assert_eq!(
        refusal(store.admit(with(credits(8), 0)).await),
        Refusal::KeyLimitReached
    );
    let too_large = refusal(store.admit(with(credits(1), 1_001)).await);
    assert_eq!(
        too_large,
        Refusal::TokenRate {
            retry_after_ms: None
        }
    );
    let expiry = |at| KeyChange {
        expires_at: Some(at),
        ..KeyChange::default()
    };
    store
        .update_key(key.id, expiry(Some(LONG_AGO)), &actor())
        .await
        .unwrap();
    let late = store.admit(with(credits(1), 0)).await;
    assert_eq!(refusal(late), Refusal::KeyExpired);
    store
        .update_key(key.id, expiry(None), &actor())
        .await
        .unwrap();
    // A key of another wallet is refused.
    let other = funded(&store, credits(10)).await;
    let mut crossed = with(credits(1), 0);
    crossed.wallet = other.wallet;
    assert_eq!(refusal(store.admit(crossed).await), Refusal::KeyDisabled);
    assert_eq!(store.balance(&key.id).await.unwrap(), before);

    // Two requests a minute, two at a time: the third exceeds both limits.
    let second = store.admit(with(credits(1), 400)).await.unwrap();
    assert_eq!(second.rates.requests.unwrap().remaining, 0);
    assert_eq!(second.rates.tokens.unwrap().remaining, 600);
    let before = store.balance(&key.id).await.unwrap();
    assert!(matches!(
        refusal(store.admit(with(credits(1), 0)).await),
        Refusal::RequestRate { .. }
    ));
    assert_eq!(store.balance(&key.id).await.unwrap(), before);

    store.close(released(first.hold));
    store.close(released(second.hold));
    store.flush().await.unwrap();
    assert_clean(&store).await;
}

pub(crate) async fn two_hundred_calls_for_seven_credits(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(7)).await;
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let (store, key) = (store.clone(), key.clone());
            tokio::spawn(async move { admit(&store, &key, credits(1)).await })
        })
        .collect();
    let mut admitted = Vec::new();
    for call in calls {
        match call.await.unwrap() {
            Ok(call) => admitted.push(call),
            Err(error) => assert_eq!(refusal(Err(error)), Refusal::InsufficientQuota),
        }
    }
    assert_eq!(admitted.len(), 7);
    let (wallet, _) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.frozen, wallet.total_available()),
        (credits(7), Micro::ZERO)
    );
    for call in &admitted {
        store.close(settled(call.hold, version, 1_000_000));
    }
    let (wallet, _) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.balance, wallet.frozen, wallet.credit_used),
        (Micro::ZERO, Micro::ZERO, Micro::ZERO)
    );
    assert_clean(&store).await;
}

pub(crate) async fn a_hold_grows_until_the_wallet_is_empty(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(3)).await;
    let admitted = admit(&store, &key, credits(1)).await.unwrap();
    let more = || Extend {
        hold: admitted.hold,
        more: ask(credits(1)),
        now: NOW,
    };
    store.extend(more()).await.unwrap().wait().await.unwrap();
    store.extend(more()).await.unwrap();
    let refused = store.extend(more()).await.unwrap_err();
    assert_eq!(refusal(Err(refused)), Refusal::InsufficientQuota);
    let (wallet, held) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.frozen, held.frozen, held.open_holds),
        (credits(3), credits(3), 1)
    );
    assert_clean(&store).await;

    store.close(settled(admitted.hold, version, 2_500_000));
    let (wallet, _) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.balance, wallet.frozen),
        (Micro::new(500_000), Micro::ZERO)
    );
    // A closed hold cannot grow.
    assert_eq!(
        store.extend(more()).await.unwrap_err(),
        AdmitError::Unavailable
    );
    assert_clean(&store).await;
}

pub(crate) async fn a_settlement_above_the_hold_is_booked_in_full(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(2)).await;
    let admitted = admit(&store, &key, credits(1)).await.unwrap();
    store.close(settled(admitted.hold, version, 5_000_000));
    let (wallet, used) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.balance, wallet.credit_used, used.usage),
        (Micro::ZERO, credits(3), credits(5))
    );
    assert_eq!(store.stats().above_hold, 1);
    assert_eq!(
        refusal(admit(&store, &key, credits(1)).await),
        Refusal::InsufficientQuota
    );
    assert_clean(&store).await;
}

/// The caller of `close` need not know the current size of the hold.
pub(crate) async fn a_counted_charge_is_capped_at_the_hold(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    let admitted = admit(&store, &key, credits(1)).await.unwrap();
    let more = Extend {
        hold: admitted.hold,
        more: ask(credits(1)),
        now: NOW,
    };
    store.extend(more).await.unwrap();
    store.close(counted(admitted.hold, version, 5_000_000));
    let (_, used) = store.balance(&key.id).await.unwrap();
    assert_eq!(used.usage, credits(2));
    let admitted = admit(&store, &key, credits(3)).await.unwrap();
    store.close(counted(admitted.hold, version, 1_000_000));
    let (_, used) = store.balance(&key.id).await.unwrap();
    assert_eq!(used.usage, credits(3), "what was counted is less");
    assert_eq!(store.stats().above_hold, 0);
    assert_clean(&store).await;
}

pub(crate) async fn a_close_comes_behind_the_growth_that_was_asked_for(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(100)).await;
    for call in 1..=20 {
        let admitted = admit(&store, &key, credits(1)).await.unwrap();
        let more = Extend {
            hold: admitted.hold,
            more: ask(credits(1)),
            now: NOW,
        };
        // The extension is requested but not awaited, because the stream has ended meanwhile.
        let mut growth = Box::pin(store.extend(more));
        drop(futures_poll_once(growth.as_mut()).await);
        store.close(counted(admitted.hold, version, 2_000_000));
        let (_, used) = store.balance(&key.id).await.unwrap();
        assert_eq!(used.usage, credits(2 * call));
    }
    assert_clean(&store).await;
}

/// A settlement of usage that we counted.
fn counted(hold: HoldId, version: PriceVersion, tokens: u64) -> Close {
    let mut close = settled(hold, version, tokens);
    if let End::Settled { basis, .. } = &mut close.end {
        *basis = Basis::Counted;
    }
    close
}

pub(crate) async fn a_release_gives_everything_back(database: &TestDatabase) {
    let store = database.open();
    let account = wallet(&store, "acme", credits(10)).await;
    let limits = KeyLimits {
        rpm: Some(5),
        tpm: Some(1_000),
        concurrency: Some(1),
        ..KeyLimits::default()
    };
    let key = key(&store, account.id, limits).await;
    let admitted = store
        .admit(admission(
            &key,
            Reservation {
                hold: credits(4),
                exposure: Micro::ZERO,
                tokens: 900,
                counts_in_flight: true,
            },
        ))
        .await
        .unwrap();
    store.close(released(admitted.hold));
    let (wallet, back) = store.balance(&key.id).await.unwrap();
    assert_eq!((wallet.balance, wallet.frozen), (credits(10), Micro::ZERO));
    assert_eq!(
        (back.frozen, back.open_holds, back.usage),
        (Micro::ZERO, 0, Micro::ZERO)
    );
    // The tokens are returned, but the request stays counted.
    let again = store
        .admit(admission(
            &key,
            Reservation {
                hold: credits(4),
                exposure: Micro::ZERO,
                tokens: 1_000,
                counts_in_flight: true,
            },
        ))
        .await
        .unwrap();
    assert_eq!(again.rates.requests.unwrap().remaining, 3);
    store.close(released(again.hold));
    store.flush().await.unwrap();
    assert_clean(&store).await;
}

pub(crate) async fn the_first_close_wins_and_others_are_counted(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    let admitted = admit(&store, &key, credits(2)).await.unwrap();
    admitted.durable.wait().await.unwrap();
    // Closes the hold again in the same batch and in later ones.
    store.close(settled(admitted.hold, version, 1_000_000));
    store.close(released(admitted.hold));
    store.close(settled(admitted.hold, version, 9_000_000));
    store.flush().await.unwrap();
    store.close(settled(admitted.hold, version, 9_000_000));
    let (wallet, _) = store.balance(&key.id).await.unwrap();
    assert_eq!((wallet.balance, wallet.frozen), (credits(9), Micro::ZERO));
    assert_eq!(store.stats().late_closes, 3);
    assert_clean(&store).await;
}

async fn limited(store: &Store, concurrency: u32) -> KeyRow {
    let account = wallet(store, "acme", credits(10)).await;
    key(
        store,
        account.id,
        KeyLimits {
            concurrency: Some(concurrency),
            ..KeyLimits::default()
        },
    )
    .await
}

pub(crate) async fn concurrency_counts_open_holds(database: &TestDatabase) {
    let store = database.open();
    let key = limited(&store, 2).await;
    let first = admit(&store, &key, credits(1)).await.unwrap();
    let second = admit(&store, &key, credits(1)).await.unwrap();
    assert_eq!(
        refusal(admit(&store, &key, credits(1)).await),
        Refusal::Concurrency
    );
    // The hold of a task does not count towards the concurrency, neither when it opens nor when it closes.
    let task = store
        .admit(admission(
            &key,
            Reservation {
                hold: credits(1),
                exposure: Micro::ZERO,
                tokens: 0,
                counts_in_flight: false,
            },
        ))
        .await
        .unwrap();
    store.close(released(task.hold));
    assert_eq!(
        refusal(admit(&store, &key, credits(1)).await),
        Refusal::Concurrency
    );
    store.close(released(first.hold));
    let third = admit(&store, &key, credits(1)).await.unwrap();
    for hold in [second.hold, third.hold] {
        store.close(released(hold));
    }
    assert_eq!(store.balance(&key.id).await.unwrap().1.open_holds, 0);
    assert_clean(&store).await;
}

pub(crate) async fn a_drained_call_no_longer_counts(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = limited(&store, 1).await;
    let gone = admit(&store, &key, credits(1)).await.unwrap();
    store.stop_counting(gone.hold);
    store.stop_counting(gone.hold);
    let next = admit(&store, &key, credits(1)).await.unwrap();
    let (wallet, counted) = store.balance(&key.id).await.unwrap();
    assert_eq!((wallet.frozen, counted.open_holds), (credits(2), 1));
    assert_clean(&store).await;
    store.close(settled(gone.hold, version, 10));
    assert_eq!(store.balance(&key.id).await.unwrap().1.open_holds, 1);
    store.close(released(next.hold));
    assert_eq!(store.balance(&key.id).await.unwrap().1.open_holds, 0);
    assert_clean(&store).await;
}

pub(crate) async fn a_call_finds_what_the_last_one_freed(database: &TestDatabase) {
    let store = database.open();
    // Each caller has credit for one call at a time, and some wait for the disk in between. Wherever a batch ends, no
    // call may overtake the close of the previous one.
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..6_u64 {
        let key = funded(&store, credits(1)).await;
        let store = store.clone();
        callers.spawn(async move {
            for call in 0..300 {
                let admitted = admit(&store, &key, credits(1)).await.unwrap();
                store.close(released(admitted.hold));
                if (call + caller) % 7 == 0 {
                    admitted.durable.wait().await.unwrap();
                }
            }
            store.balance(&key.id).await.unwrap().0
        });
    }
    while let Some(wallet) = callers.join_next().await {
        let wallet = wallet.unwrap();
        assert_eq!((wallet.balance, wallet.frozen), (credits(1), Micro::ZERO));
    }
    assert_clean(&store).await;
}

pub(crate) async fn a_caller_that_leaves_before_the_answer_holds_nothing(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(100)).await;
    for _ in 0..200 {
        // The future is polled once, so that the call is queued, and then dropped before, during or after the decision.
        let mut call = Box::pin(admit(&store, &key, credits(1)));
        let polled = futures_poll_once(call.as_mut()).await;
        if let Some(Ok(admitted)) = polled {
            store.close(released(admitted.hold));
        }
    }
    // Flushes twice, because an admission whose caller is gone queues its own close after the first flush.
    store.flush().await.unwrap();
    store.flush().await.unwrap();
    let (wallet, left) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.frozen, wallet.balance, left.open_holds),
        (Micro::ZERO, credits(100), 0)
    );
    assert_eq!(store.stats().open_holds, 0);
    assert_clean(&store).await;
}

async fn futures_poll_once<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut future).poll(cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

pub(crate) async fn a_decision_becomes_durable(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(10)).await;
    let admitted = admit(&store, &key, credits(1)).await.unwrap();
    admitted.durable.wait().await.unwrap();
    assert!(admitted.durable.is_done());
    let again = admitted.durable.clone();
    again.wait().await.unwrap();
    store.close(released(admitted.hold));
    store.flush().await.unwrap();
    assert!(store.healthy());
    assert_clean(&store).await;
}

pub(crate) async fn a_full_queue_is_busy(database: &TestDatabase) {
    let settings = Settings {
        queue_max: 0,
        ..database.settings()
    };
    let open = database.open();
    let key = funded(&open, credits(10)).await;
    drop(open);
    let (store, _) = Store::open(&settings).unwrap();
    assert_eq!(
        admit(&store, &key, credits(1)).await.unwrap_err(),
        AdmitError::Busy
    );
}

pub(crate) async fn one_hot_wallet_beside_many_quiet_ones(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let hot = funded(&store, credits(1_000)).await;
    let mut quiet = Vec::new();
    for _ in 0..20 {
        quiet.push(funded(&store, credits(10)).await);
    }
    let calls: Vec<_> = (0..400)
        .map(|n| {
            let key = if n % 4 == 0 {
                quiet[n % quiet.len()].clone()
            } else {
                hot.clone()
            };
            let store = store.clone();
            tokio::spawn(async move {
                let admitted = admit(&store, &key, Micro::new(2_000)).await.unwrap();
                admitted.durable.wait().await.unwrap();
                store.close(settled(admitted.hold, version, 1_000));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let (wallet, used) = store.balance(&hot.id).await.unwrap();
    assert_eq!(
        (wallet.frozen, used.usage),
        (Micro::ZERO, Micro::new(300_000))
    );
    assert_clean(&store).await;
}

/// A clock that is set back does not block rate limits, and a key's expiry follows the clock (R6). `PostgreSQL` uses
/// its own clock.
pub(crate) async fn a_clock_that_jumps_moves_only_the_end_of_a_key(database: &TestDatabase) {
    let store = database.open();
    let wallet = wallet(&store, "acme", credits(100)).await;
    let hour_ms = 3_600_000;
    let limits = KeyLimits {
        rpm: Some(60),
        expires_at: Some(NOW.plus_ms(2 * hour_ms)),
        ..KeyLimits::default()
    };
    let key = key(&store, wallet.id, limits).await;
    let at = async |now| {
        let call = Admit {
            now,
            ..admission(&key, ask(Micro::ZERO))
        };
        let admitted = store.admit(call).await;
        if let Ok(admitted) = &admitted {
            store.close(Close {
                now,
                ..released(admitted.hold)
            });
        }
        match admitted {
            Ok(_) => Ok(()),
            Err(AdmitError::Refused { refusal, .. }) => Err(refusal),
            Err(error) => panic!("{error}"),
        }
    };
    for _ in 0..60 {
        assert_eq!(at(NOW).await, Ok(()));
    }
    let soon = Err(Refusal::RequestRate {
        retry_after_ms: 1_000,
    });
    assert_eq!(at(NOW).await, soon);
    // The clock is set back by an hour. One request becomes available each second, as before.
    let back = NOW.minus_ms(hour_ms);
    assert_eq!(at(back).await, soon);
    assert_eq!(at(back.plus_ms(1_000)).await, Ok(()));
    assert_eq!(
        at(back.plus_ms(1_000)).await,
        Err(Refusal::RequestRate {
            retry_after_ms: 1_000
        })
    );
    // A day ahead, the key has expired. When the clock is right again, the key is valid.
    assert_eq!(
        at(NOW.plus_ms(24 * hour_ms)).await,
        Err(Refusal::KeyExpired)
    );
    assert_eq!(at(NOW.plus_ms(2_000)).await, Ok(()));
    assert_clean(&store).await;
}
