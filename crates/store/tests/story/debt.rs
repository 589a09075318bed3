//! Tests the debt limit, which bounds what open calls may cost beyond their holds.

use ledger::{Micro, Refusal, Reservation};
use store::{
    AdmitError, AdmittedCall, EntryKind, EntryQuery, Extend, KeyRow, PriceVersion, Settings, Store,
};

use crate::test_database::{
    NOW, TestDatabase, admission, ask, assert_clean, credits, funded, price, released, settled,
};

/// A call holds a tenth of a credit and may cost two credits.
const HOLD: Micro = Micro::new(100_000);
const MOST: Micro = Micro::new(2_000_000);

fn dear() -> Reservation {
    Reservation {
        exposure: MOST.checked_sub(HOLD).unwrap(),
        ..ask(HOLD)
    }
}

fn open(database: &TestDatabase, debt_limit: Micro) -> Store {
    let settings = Settings {
        debt_limit,
        ..database.settings()
    };
    Store::open(&settings).unwrap().0
}

fn refusal<T: std::fmt::Debug>(result: Result<T, AdmitError>) -> Refusal {
    match result {
        Err(AdmitError::Refused { refusal, .. }) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) async fn exposure_is_kept_with_its_hold(database: &TestDatabase) {
    let store = open(database, credits(3));
    let key = funded(&store, credits(1)).await;
    let one = store.admit(admission(&key, dear())).await.unwrap();
    let two = store.admit(admission(&key, dear())).await.unwrap();
    let exposed = store.balance(&key.id).await.unwrap().0.exposed;
    assert_eq!(exposed, Micro::new(3_800_000));
    assert_clean(&store).await;
    // Four credits are reserved: one is in the wallet, three may become debt.
    let before = store.balance(&key.id).await.unwrap();
    let third = store.admit(admission(&key, dear())).await;
    assert_eq!(refusal(third), Refusal::DebtLimitReached);
    assert_eq!(store.balance(&key.id).await.unwrap(), before);

    // A growing hold reduces its exposure by the same amount.
    let grow = |hold: Micro| Extend {
        hold: one.hold,
        more: ask(hold),
        now: NOW,
    };
    store.extend(grow(Micro::new(500_000))).await.unwrap();
    let grown = store.balance(&key.id).await.unwrap().0;
    assert_eq!(
        (grown.frozen, grown.exposed),
        (Micro::new(700_000), Micro::new(3_300_000))
    );
    assert_clean(&store).await;

    store.close(released(two.hold));
    let rest = store.balance(&key.id).await.unwrap().0;
    assert_eq!(rest.exposed, Micro::new(1_400_000));
    let _left_open = store.admit(admission(&key, dear())).await.unwrap();
    drop(store);

    // The next start closes the open calls and releases their exposure.
    let store = open(database, credits(3));
    let back = store.balance(&key.id).await.unwrap().0;
    assert_eq!((back.frozen, back.exposed), (Micro::ZERO, Micro::ZERO));
    assert_clean(&store).await;
}

/// Admits two hundred calls at once on a wallet of one credit. Each admitted call then costs its maximum.
async fn race(nodes: &[Store], key: &KeyRow, version: PriceVersion, debt_limit: Micro) {
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..200 {
        let (node, key) = (n % nodes.len(), key.clone());
        let store = nodes[node].clone();
        asked.spawn(async move { (node, store.admit(admission(&key, dear())).await) });
    }
    let mut admitted: Vec<(usize, AdmittedCall)> = Vec::new();
    while let Some(answer) = asked.join_next().await {
        match answer.unwrap() {
            (node, Ok(call)) => admitted.push((node, call)),
            (_, refused) => assert_eq!(refusal(refused), Refusal::DebtLimitReached),
        }
    }
    // One credit and ten credits of debt cover five calls of two credits.
    assert_eq!(admitted.len(), 5);
    for (node, call) in &admitted {
        call.durable.wait().await.unwrap();
        let cost = u64::try_from(MOST.get()).unwrap();
        nodes[*node].close(settled(call.hold, version, cost));
        nodes[*node].flush().await.unwrap();
        let wallet = nodes[0].balance(&key.id).await.unwrap().0;
        assert!(wallet.credit_used <= debt_limit, "{wallet:?}");
    }
    let wallet = nodes[0].balance(&key.id).await.unwrap().0;
    assert_eq!(
        (wallet.credit_used, wallet.exposed),
        (credits(9), Micro::ZERO)
    );
    for node in nodes {
        assert_clean(node).await;
    }
}

pub(crate) async fn two_hundred_dear_calls_stay_within_the_debt_limit(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(1)).await;
    race(&[store], &key, version, Settings::DEBT_LIMIT).await;
}

pub(crate) async fn three_nodes_stay_within_the_debt_limit(database: &TestDatabase) {
    let nodes = [database.open(), database.open(), database.open()];
    let version = price(&nodes[0]).await;
    let key = funded(&nodes[0], credits(1)).await;
    race(&nodes, &key, version, Settings::DEBT_LIMIT).await;
}

/// Plausible usage never comes near the largest amount. If a charge does not fit anyway, it is recorded and counted.
pub(crate) async fn a_charge_that_does_not_fit_is_noted_and_counted(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    let most = u64::try_from(i64::MAX).unwrap();
    let one = store.admit(admission(&key, dear())).await.unwrap();
    let two = store.admit(admission(&key, dear())).await.unwrap();
    for call in [one.hold, two.hold] {
        store.close(settled(call, version, most));
        store.flush().await.unwrap();
    }
    let (wallet, used) = store.balance(&key.id).await.unwrap();
    assert_eq!((wallet.frozen, wallet.exposed), (Micro::ZERO, Micro::ZERO));
    assert_eq!(used.usage, Micro::MAX);
    assert_eq!(store.stats().unbookable, 1);
    let query = EntryQuery {
        closes: Some(two.hold),
        ..EntryQuery::default()
    };
    let entries = store.entries(query).await.unwrap();
    assert_eq!(entries[0].kind, EntryKind::Abandoned);
    let note = entries[0].note.as_deref().unwrap();
    assert!(note.contains("9223372036854775807 micro"), "{note}");
    assert_clean(&store).await;
}
