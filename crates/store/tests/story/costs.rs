//! Tests the upstream cost of calls, which is booked together with their charge.

use ledger::{Meter, Micro, Step};
use store::{
    Basis, Close, Cost, CostVersion, End, EntryCost, EntryQuery, HoldId, IfLost, MeterText, Rule,
    SessionStep, Store,
};

use crate::test_database::{
    NOW, TestDatabase, admit, assert_clean, credits, funded, price, settled,
};

/// The cost is half of the price: half a micro-credit per token, so that odd counts are rounded.
const CARD: &str = r#"{"input":"0.5"}"#;

pub(crate) async fn version(store: &Store, channel: &str) -> CostVersion {
    let version = store.cost_version("story/model", channel, CARD).await;
    version.unwrap()
}

pub(crate) fn cost(version: CostVersion, micro: i64) -> Cost {
    let amount = Micro::new(micro);
    Cost { amount, version }
}

pub(crate) fn costing(mut close: Close, known: Option<Box<Cost>>) -> Close {
    if let End::Settled { cost, .. } = &mut close.end {
        *cost = known;
    }
    close
}

async fn costs(store: &Store) -> Vec<Option<EntryCost>> {
    let rows = store.entries(EntryQuery::default()).await.unwrap();
    let calls = rows.into_iter().filter_map(|row| row.call);
    let usages = calls.filter_map(|call| call.usage);
    usages.map(|usage| usage.cost).collect()
}

pub(crate) async fn the_cost_of_a_call_stands_in_its_entry(database: &TestDatabase) {
    let store = database.open();
    let prices = price(&store).await;
    let (near, far) = (version(&store, "near").await, version(&store, "far").await);
    assert_eq!(version(&store, "near").await, near);
    assert_ne!(near.number(), far.number());
    let key = funded(&store, credits(10)).await;
    for (tokens, known) in [
        (3, Some(cost(near, 2).into())),
        (5, None),
        (4, Some(cost(far, 2).into())),
        (0, Some(cost(far, 0).into())),
    ] {
        let hold = admit(&store, &key, credits(1)).await.unwrap().hold;
        store.close(costing(settled(hold, prices, tokens), known));
    }
    store.flush().await.unwrap();
    let known = |amount, version: CostVersion| {
        Some(EntryCost {
            amount: Micro::new(amount),
            version: version.number(),
        })
    };
    let expected = [known(2, near), None, known(2, far), known(0, far)];
    assert_eq!(costs(&store).await, expected);
    assert_clean(&store).await;
    let rows = store.costs().await.unwrap();
    let listed: Vec<_> = rows
        .iter()
        .map(|row| (&*row.model, &*row.channel, &*row.card))
        .collect();
    assert_eq!(
        listed,
        [("story/model", "near", CARD), ("story/model", "far", CARD)]
    );
    // The next start reads the same costs and computes the same chain.
    drop(store);
    let store = database.open();
    assert_eq!(costs(&store).await, expected);
    assert_clean(&store).await;
}

fn seconds(count: u64) -> MeterText {
    MeterText::from(&Meter {
        realtime_seconds: count,
        ..Meter::default()
    })
}

/// The charge at 0.1 credits per minute, rounded up once.
fn charge(seconds: u64) -> Micro {
    Micro::new(i64::try_from((seconds * 100_000).div_ceil(60)).unwrap())
}

/// The cost at 0.01 credits per minute, rounded up once.
fn paid(seconds: u64) -> i64 {
    i64::try_from((seconds * 10_000).div_ceil(60)).unwrap()
}

pub(crate) async fn the_cost_of_a_session_is_booked_by_its_steps_and_rounded_once(
    database: &TestDatabase,
) {
    let store = database.open();
    let prices = store.price_version("story/voice", r#"{"realtime_minute":"0.1"}"#);
    let prices = prices.await.unwrap();
    let card = r#"{"realtime_minute":"0.01"}"#;
    let version = store
        .cost_version("story/voice", "near", card)
        .await
        .unwrap();
    let key = funded(&store, credits(1)).await;
    let hold: HoldId = admit(&store, &key, charge(30)).await.unwrap().hold;
    // The cost of the second step is unknown. The third step includes it.
    for (used, known) in [(10, true), (20, false), (31, true)] {
        let step = SessionStep {
            hold,
            step: Step {
                used: charge(used),
                wanted: charge(used + 30),
                least: charge(used + 1),
            },
            meter: seconds(used),
            price_version: prices,
            cost: known.then(|| Box::new(cost(version, paid(used)))),
            now: NOW,
        };
        store.step_session(step).await.unwrap();
        store.flush().await.unwrap();
        assert_clean(&store).await;
    }
    store.close(Close {
        hold,
        end: End::Settled {
            charge: charge(40),
            meter: seconds(40),
            price_version: prices,
            basis: Basis::Counted,
            tokens: None,
            cost: Some(cost(version, paid(40)).into()),
        },
        now: NOW,
        if_lost: IfLost::Charge,
    });
    store.flush().await.unwrap();
    assert_clean(&store).await;
    let amounts: Vec<_> = costs(&store).await;
    let amounts: Vec<_> = amounts
        .iter()
        .map(|it| it.map(|it| it.amount.get()))
        .collect();
    let steps = [paid(10), paid(31) - paid(10), paid(40) - paid(31)].map(Some);
    assert_eq!(amounts, [steps[0], None, steps[1], steps[2]]);
}

pub(crate) async fn a_forged_cost_is_found(database: &TestDatabase) {
    let guards = database.sql_for(
        "DROP TRIGGER entries_are_not_changed; DROP TRIGGER cost_versions_are_not_changed;",
        "DROP TRIGGER entries_are_not_changed ON entries;
         DROP TRIGGER cost_versions_are_not_changed ON cost_versions;",
    );
    for (sql, expected) in [
        (
            "UPDATE entries SET cost = 1 WHERE cost = 2",
            vec![Rule::V7Price, Rule::V9Chain],
        ),
        (
            "UPDATE entries SET cost = NULL, cost_version = NULL",
            vec![Rule::V9Chain],
        ),
        (
            "UPDATE cost_versions SET channel = 'cheap'",
            vec![Rule::V9Chain],
        ),
        (
            "UPDATE cost_versions SET card = '{\"input\":\"0.500\"}'",
            vec![Rule::V9Chain],
        ),
        (
            "UPDATE cost_versions SET card = '{\"input\":\"5\"}'",
            vec![Rule::V7Price, Rule::V9Chain],
        ),
    ] {
        let database = TestDatabase::like(database);
        let store = database.open();
        let prices = price(&store).await;
        let version = version(&store, "near").await;
        let key = funded(&store, credits(1)).await;
        let hold = admit(&store, &key, credits(1)).await.unwrap().hold;
        store.close(costing(
            settled(hold, prices, 3),
            Some(cost(version, 2).into()),
        ));
        store.flush().await.unwrap();
        assert_clean(&store).await;
        database.tamper(&format!("{guards} {sql}"));
        let report = store.verify().await.unwrap();
        let mut rules: Vec<_> = report.differences.iter().map(|it| it.rule).collect();
        rules.dedup();
        assert_eq!(rules, expected, "{sql}: {:#?}", report.differences);
    }
}
