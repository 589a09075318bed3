//! Tests sessions, which are charged in steps while their holds stay open.

use ledger::{Meter, Micro, Refusal, Step};
use store::EntryKind::{Abandoned, Part, Settled, TopUp};
use store::{
    AdmitError, Basis, Close, End, EntryQuery, HoldId, IfLost, MeterText, PriceVersion,
    SessionStep, Store,
};

use crate::test_database::{
    NOW, TestDatabase, actor, admit, assert_clean, assert_counted, credits, funded,
};

/// At this price, ten seconds cost 16,666 and two thirds micro-credits.
const CARD: &str = r#"{"realtime_minute":"0.1"}"#;

pub(crate) async fn price(store: &Store) -> PriceVersion {
    store.price_version("story/voice", CARD).await.unwrap()
}

fn meter(seconds: u64) -> MeterText {
    MeterText::from(&Meter {
        realtime_seconds: seconds,
        ..Meter::default()
    })
}

/// The price of this many seconds, rounded up once.
fn cost(seconds: u64) -> Micro {
    Micro::new(i64::try_from((seconds * 100_000).div_ceil(60)).unwrap())
}

pub(crate) fn step(hold: HoldId, version: PriceVersion, used: u64, ahead: u64) -> SessionStep {
    SessionStep {
        hold,
        step: Step {
            used: cost(used),
            wanted: cost(used + ahead),
            least: cost(used + 1),
        },
        meter: meter(used),
        price_version: version,
        now: NOW,
        cost: None,
    }
}

pub(crate) fn settled(hold: HoldId, version: PriceVersion, seconds: u64) -> Close {
    let end = End::Settled {
        charge: cost(seconds),
        meter: meter(seconds),
        price_version: version,
        basis: Basis::Counted,
        tokens: None,
        cost: None,
    };
    Close {
        if_lost: IfLost::Charge,
        hold,
        end,
        now: NOW,
    }
}

pub(crate) async fn a_session_is_charged_in_steps_and_rounded_once(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(1)).await;
    let hold = admit(&store, &key, cost(30)).await.unwrap().hold;
    for used in [10, 20, 31] {
        let reach = store
            .step_session(step(hold, version, used, 30))
            .await
            .unwrap();
        assert_eq!(reach, cost(used + 30));
        let (wallet, key) = store.balance(&key.id).await.unwrap();
        assert_eq!(key.usage, cost(used));
        assert_eq!(key.open_holds, 1);
        assert_eq!(wallet.frozen.get(), reach.get() - cost(used).get());
        assert_eq!(wallet.balance.get(), credits(1).get() - cost(used).get());
        assert_clean(&store).await;
    }
    // A step without new usage books nothing.
    store
        .step_session(step(hold, version, 31, 30))
        .await
        .unwrap();
    store.close(settled(hold, version, 40));
    let (wallet, used) = store.balance(&key.id).await.unwrap();
    assert_eq!((wallet.frozen, used.frozen), (Micro::ZERO, Micro::ZERO));
    assert_eq!((used.usage, used.open_holds), (cost(40), 0));
    assert_clean(&store).await;

    let rows = store.entries(EntryQuery::default()).await.unwrap();
    let kinds_and_charges: Vec<_> = rows.iter().map(|row| (row.kind, row.charge)).collect();
    let between = |from: u64, to: u64| Micro::new(cost(to).get() - cost(from).get());
    assert_eq!(
        kinds_and_charges,
        [
            (TopUp, Micro::ZERO),
            (Part, cost(10)),
            (Part, between(10, 20)),
            (Part, between(20, 31)),
            (Settled, between(31, 40)),
        ]
    );
    let calls: Vec<_> = rows.iter().filter_map(|row| row.call.as_deref()).collect();
    assert!(
        calls
            .iter()
            .all(|call| call.hold == hold && call.key == key.id)
    );
    let booked: Vec<_> = calls.iter().map(|call| call.booked).collect();
    assert_eq!(booked, [Micro::ZERO, cost(10), cost(20), cost(31)]);
    for (row, call) in rows.iter().skip(1).zip(calls) {
        let seconds = call.usage.as_ref().unwrap().meter.read().unwrap();
        let price = cost(seconds.realtime_seconds);
        assert_eq!(call.charge(row.kind, price), row.charge);
    }
    // Only the last entry counts as the close of the hold.
    let query = EntryQuery {
        closes: Some(hold),
        ..EntryQuery::default()
    };
    assert_eq!(store.entries(query).await.unwrap().len(), 1);
    assert_counted(&store).await;
}

pub(crate) async fn a_step_reaches_as_far_as_the_money(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, cost(35)).await;
    let hold = admit(&store, &key, cost(30)).await.unwrap().hold;
    let reach = store
        .step_session(step(hold, version, 20, 30))
        .await
        .unwrap();
    assert_eq!(reach, cost(35));
    let before = store.balance(&key.id).await.unwrap();
    let refused = store.step_session(step(hold, version, 35, 30)).await;
    let AdmitError::Refused { refusal, .. } = refused.unwrap_err() else {
        panic!("the ledger does not answer");
    };
    assert_eq!(refusal, Refusal::InsufficientQuota);
    assert_eq!(store.balance(&key.id).await.unwrap(), before);
    // Counted usage beyond the hold is not charged.
    store.close(settled(hold, version, 36));
    let (wallet, _) = store.balance(&key.id).await.unwrap();
    assert_eq!((wallet.balance, wallet.frozen), (Micro::ZERO, Micro::ZERO));
    assert_eq!(wallet.credit_used, Micro::ZERO);
    assert_clean(&store).await;
}

pub(crate) async fn a_dead_key_takes_no_further_step(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(1)).await;
    let hold = admit(&store, &key, cost(30)).await.unwrap().hold;
    store
        .set_key_enabled(key.id, false, &actor())
        .await
        .unwrap();
    let refused = store.step_session(step(hold, version, 10, 30)).await;
    let AdmitError::Refused { refusal, .. } = refused.unwrap_err() else {
        panic!("the ledger does not answer");
    };
    assert_eq!(refusal, Refusal::KeyDisabled);
    store.close(settled(hold, version, 10));
    let (_, used) = store.balance(&key.id).await.unwrap();
    assert_eq!(used.usage, cost(10));
    // The session no longer exists.
    let late = store.step_session(step(hold, version, 20, 30)).await;
    assert!(matches!(late, Err(AdmitError::Unavailable)), "{late:?}");
    assert_clean(&store).await;
}

pub(crate) async fn an_abandoned_session_keeps_what_its_steps_booked(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(1)).await;
    let hold = admit(&store, &key, cost(30)).await.unwrap().hold;
    store
        .step_session(step(hold, version, 17, 30))
        .await
        .unwrap();
    store.flush().await.unwrap();
    drop(store);

    let (store, recovery) = database.reopen();
    assert_eq!(recovery.abandoned, 1);
    let (wallet, used) = store.balance(&key.id).await.unwrap();
    assert_eq!((wallet.frozen, used.usage), (Micro::ZERO, cost(17)));
    let rows = store.entries(EntryQuery::default()).await.unwrap();
    let kinds_and_charges: Vec<_> = rows.iter().map(|row| (row.kind, row.charge)).collect();
    assert_eq!(
        kinds_and_charges,
        [
            (TopUp, Micro::ZERO),
            (Part, cost(17)),
            (Abandoned, Micro::ZERO)
        ]
    );
    assert_eq!(rows[2].call.as_deref().unwrap().booked, cost(17));
    assert_clean(&store).await;
}
