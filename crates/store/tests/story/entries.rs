//! Tests reading entries.

use ledger::{Delta, Micro};
use store::EntryKind::{CreditLimit, Gift, Released, Settled, TopUp};
use store::{EntryKind, EntryQuery, EntryRow, NewWallet, Store};

use crate::test_database::{
    CARD, LONG_AGO, TestDatabase, actor, admit, credits, funded, key, price, released, settled,
    wallet,
};

async fn all(store: &Store, query: EntryQuery) -> Vec<EntryRow> {
    store.entries(query).await.unwrap()
}

fn kinds(rows: &[EntryRow]) -> Vec<EntryKind> {
    rows.iter().map(|row| row.kind).collect()
}

pub(crate) async fn entries_tell_what_was_posted(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    let paid = admit(&store, &key, credits(1)).await.unwrap().hold;
    let free = admit(&store, &key, credits(1)).await.unwrap().hold;
    store.close(settled(paid, version, 600_000));
    store.close(released(free));
    store.flush().await.unwrap();

    let rows = all(&store, EntryQuery::default()).await;
    assert_eq!(kinds(&rows), [TopUp, Settled, Released]);
    assert_eq!(
        rows.iter().map(|row| row.seq).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert!(rows.iter().all(|row| row.wallet == key.wallet));
    assert_eq!(rows[0].call, None);
    assert_eq!(rows[0].delta.balance, credits(10).get());

    let close = rows[1].call.as_deref().unwrap();
    let expected = Delta {
        balance: -600_000,
        ..Delta::default()
    };
    assert_eq!(
        (rows[1].charge, rows[1].delta),
        (Micro::new(600_000), expected)
    );
    assert_eq!((close.hold, close.key), (paid, key.id));
    assert_eq!(close.held, credits(1));
    assert!(close.opened_at <= rows[1].at);
    assert_eq!(&*close.request_id, "req_story");
    let usage = close.usage.as_ref().unwrap();
    assert_eq!(usage.meter.as_str(), r#"{"input":600000}"#);
    assert_eq!(
        (usage.price_version, usage.basis),
        (version.number(), store::Basis::Reported)
    );
    assert_eq!(rows[2].call.as_deref().unwrap().usage, None);

    let prices = store.prices().await.unwrap();
    assert_eq!(prices.len(), 1);
    assert_eq!(prices[0].version, version.number());
    assert_eq!((&*prices[0].model, &*prices[0].card), ("story/model", CARD));
    let found = store.price(version.number()).await.unwrap();
    assert_eq!(found.as_ref(), prices.first());
}

pub(crate) async fn entries_are_found_by_every_condition(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let one = funded(&store, credits(10)).await;
    let other = wallet(&store, "other", credits(5)).await;
    let other_key = key(&store, other.id, store::KeyLimits::default()).await;
    let mut holds = Vec::new();
    for key in [&one, &other_key, &one] {
        let hold = admit(&store, key, credits(1)).await.unwrap().hold;
        store.close(settled(hold, version, 1));
        holds.push(hold);
    }
    store.flush().await.unwrap();
    let whole = all(&store, EntryQuery::default()).await;
    let end = whole.iter().map(|row| row.at).max().unwrap().plus_ms(1);
    let query = |set: &dyn Fn(&mut EntryQuery)| {
        let mut query = EntryQuery::default();
        set(&mut query);
        query
    };
    for (query, count) in [
        (query(&|_| ()), 5),
        (query(&|q| q.wallet = Some(one.wallet)), 3),
        (query(&|q| q.wallet = Some(store::WalletId::random())), 0),
        (query(&|q| q.closes = Some(holds[1])), 1),
        (query(&|q| q.since = Some(end)), 0),
        (
            query(&|q| (q.since, q.until) = (Some(LONG_AGO), Some(end))),
            5,
        ),
        (query(&|q| q.until = Some(LONG_AGO)), 0),
        (query(&|q| q.limit = 2), 2),
    ] {
        let shown = format!("{query:?}");
        assert_eq!(all(&store, query).await.len(), count, "{shown}");
    }
    // The pages have no gaps and no repetitions.
    let mut paged = Vec::new();
    while let Some(row) = all(
        &store,
        EntryQuery {
            after: paged.last().map(|row: &EntryRow| row.cursor),
            limit: 1,
            ..EntryQuery::default()
        },
    )
    .await
    .pop()
    {
        paged.push(row);
    }
    assert_eq!(paged, whole);
}

pub(crate) async fn everything_a_wallet_begins_with_is_an_entry(database: &TestDatabase) {
    let store = database.open();
    let new = NewWallet {
        name: "full".to_owned(),
        balance: credits(3),
        gift: credits(2),
        credit_limit: credits(1),
    };
    store.create_wallet(new, &actor()).await.unwrap();
    let rows = all(&store, EntryQuery::default()).await;
    assert_eq!(kinds(&rows), [TopUp, Gift, CreditLimit]);
    assert_eq!(rows[2].note.as_deref(), Some("opening: 0 -> 1"));
    assert_eq!(rows[2].delta, Delta::default());
}
