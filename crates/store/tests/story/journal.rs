//! Tests the journal.

use ledger::{DAY_MS, Meter, Micro, UnixMs};
use store::{
    BODY_BYTES_MAX, JournalEntry, JournalQuery, JournalRow, KeyId, MeterText, Settings,
    StatusRange, Store, Timings, WalletId,
};

use crate::test_database::{NOW, TestDatabase};

fn now() -> UnixMs {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    UnixMs::new(i64::try_from(since.as_millis()).unwrap())
}

fn row(n: usize, at: UnixMs) -> JournalRow {
    JournalRow {
        at,
        request_id: format!("req_{n}").as_str().into(),
        endpoint: "/v1/chat/completions".into(),
        model: "story/model".into(),
        status: 200,
        ..JournalRow::default()
    }
}

async fn find(store: &Store, query: JournalQuery) -> Vec<String> {
    let rows = store.journal(query).await.unwrap();
    rows.into_iter()
        .map(|JournalEntry { row, .. }| row.request_id.to_string())
        .collect()
}

pub(crate) async fn rows_come_back_as_they_were_given(database: &TestDatabase) {
    let store = database.open();
    let at = now();
    let full = JournalRow {
        wallet: Some(WalletId::random()),
        key: Some(KeyId::random()),
        channel: Some("main".into()),
        upstream_model: Some("gpt-large-2026".into()),
        code: Some("upstream_timeout".into()),
        stream: true,
        outcome: Some("settled".into()),
        meter: Some(MeterText::from(&Meter {
            input: 7,
            output: 9,
            ..Meter::default()
        })),
        charge: Micro::new(123),
        cost: Some(Micro::new(45)),
        timings: Timings {
            admitted_us: Some(12),
            queued_us: Some(5),
            upstream_us: Some(3_400),
            first_byte_us: Some(3_500),
            total_us: 99_000,
        },
        dropped_params: Some("seed".into()),
        route_notes: Some("main: 429".into()),
        request_body: Some("{\"model\":…}".into()),
        response_body: Some("{}".into()),
        ..row(1, at)
    };
    // A caller that was not authenticated has neither a wallet nor a key.
    let bare = JournalRow {
        status: 401,
        ..row(2, at)
    };
    store.journal_append(full.clone());
    store.journal_append(bare.clone());
    store.flush().await.unwrap();
    let found = store.journal(JournalQuery::default()).await.unwrap();
    let rows: Vec<JournalRow> = found.into_iter().map(|entry| entry.row).collect();
    assert_eq!(rows, [bare, full]);
    assert_eq!(store.stats().journal_written, 2);
}

pub(crate) async fn pages_follow_each_other_without_gap_or_repeat(database: &TestDatabase) {
    let store = database.open();
    let at = now();
    // Many rows have the same millisecond, and the clock is set back once.
    for n in 0..250 {
        store.journal_append(row(n, if n == 100 { at.minus_ms(DAY_MS) } else { at }));
    }
    store.flush().await.unwrap();
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = store
            .journal(JournalQuery {
                before,
                limit: 40,
                ..JournalQuery::default()
            })
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.cursor);
        seen.extend(
            page.into_iter()
                .map(|entry| entry.row.request_id.to_string()),
        );
    }
    let expected: Vec<String> = (0..250).rev().map(|n| format!("req_{n}")).collect();
    assert_eq!(seen, expected);

    // A reader follows the journal by asking for rows newer than a position.
    let newest = store
        .journal(JournalQuery {
            limit: 1,
            ..JournalQuery::default()
        })
        .await
        .unwrap()[0]
        .cursor;
    let after = || JournalQuery {
        after: Some(newest),
        ..JournalQuery::default()
    };
    assert!(find(&store, after()).await.is_empty());
    store.journal_append(row(999, at));
    store.flush().await.unwrap();
    assert_eq!(find(&store, after()).await, ["req_999"]);
}

pub(crate) async fn conditions_are_all_obeyed(database: &TestDatabase) {
    let store = database.open();
    let at = now();
    let (wallet, other_wallet) = (WalletId::random(), WalletId::random());
    let (key, sibling, other_key) = (KeyId::random(), KeyId::random(), KeyId::random());
    for (n, wallet, key, status, model, at) in [
        (0, wallet, key, 200, "a/x", at.minus_ms(1_000)),
        (1, wallet, sibling, 200, "a/x", at),
        (2, wallet, key, 429, "a/x", at),
        (3, wallet, key, 200, "a/y", at),
        (4, other_wallet, other_key, 404, "a/x", at),
    ] {
        let row = JournalRow {
            wallet: Some(wallet),
            key: Some(key),
            status,
            model: model.into(),
            ..row(n, at)
        };
        store.journal_append(row);
    }
    store.flush().await.unwrap();
    let only = |set: &dyn Fn(&mut JournalQuery)| {
        let mut query = JournalQuery::default();
        set(&mut query);
        query
    };
    for (query, expected) in [
        (only(&|q| q.wallet = Some(wallet)), vec![3, 2, 1, 0]),
        (only(&|q| q.key = Some(key)), vec![3, 2, 0]),
        (
            only(&|q| (q.key, q.wallet) = (Some(key), Some(wallet))),
            vec![3, 2, 0],
        ),
        (
            only(&|q| (q.key, q.wallet) = (Some(key), Some(other_wallet))),
            vec![],
        ),
        (only(&|q| q.wallet = Some(WalletId::random())), vec![]),
        (only(&|q| q.key = Some(KeyId::random())), vec![]),
        (only(&|q| q.model = Some("a/y".to_owned())), vec![3]),
        (only(&|q| q.model = Some("a/%".to_owned())), vec![]),
        (only(&|q| q.status = Some(StatusRange::only(429))), vec![2]),
        (
            only(&|q| q.status = Some(StatusRange::class(4))),
            vec![4, 2],
        ),
        (only(&|q| q.since = Some(at)), vec![4, 3, 2, 1]),
        (only(&|q| q.since = Some(at.plus_ms(1))), vec![]),
        (only(&|q| q.until = Some(at)), vec![0]),
        (
            only(&|q| (q.wallet, q.until) = (Some(wallet), Some(at.plus_ms(1)))),
            vec![3, 2, 1, 0],
        ),
        (
            only(&|q| (q.since, q.until) = (Some(at.minus_ms(1)), Some(at))),
            vec![],
        ),
        (only(&|q| q.request_id = Some("req_4".to_owned())), vec![4]),
        (
            only(&|q| q.request_id = Some("' OR 1 = 1 --".to_owned())),
            vec![],
        ),
        (only(&|q| q.limit = 2), vec![4, 3]),
    ] {
        let shown = format!("{query:?}");
        let expected: Vec<String> = expected.iter().map(|n| format!("req_{n}")).collect();
        assert_eq!(find(&store, query).await, expected, "{shown}");
    }
}

pub(crate) async fn old_rows_go_and_young_ones_stay(database: &TestDatabase) {
    let store = database.open();
    let now = now();
    for (n, age_days) in [(1, 40), (2, 31), (3, 29), (4, 0)] {
        store.journal_append(row(n, now.minus_ms(age_days * DAY_MS)));
    }
    store.flush().await.unwrap();
    assert_eq!(find(&store, JournalQuery::default()).await.len(), 4);
    drop(store);
    let store = database.open();
    store.flush().await.unwrap();
    assert_eq!(
        find(&store, JournalQuery::default()).await,
        ["req_4", "req_3"]
    );
    drop(store);
    let (store, _) = Store::open(&Settings {
        journal_retention_days: 0,
        ..database.settings()
    })
    .unwrap();
    store.journal_append(row(5, NOW));
    store.flush().await.unwrap();
    assert_eq!(find(&store, JournalQuery::default()).await.len(), 3);
}

pub(crate) async fn a_full_queue_drops_and_counts(database: &TestDatabase) {
    let (store, _) = Store::open(&Settings {
        journal_queue_max: 0,
        ..database.settings()
    })
    .unwrap();
    store.journal_append(row(1, now()));
    store.journal_append(row(2, now()));
    store.flush().await.unwrap();
    assert!(find(&store, JournalQuery::default()).await.is_empty());
    assert_eq!(store.stats().journal_dropped, 2);
    // A full queue of the journal does not affect the health of the ledger.
    assert!(store.healthy());
}

pub(crate) async fn bodies_without_room_are_left_out_and_counted(database: &TestDatabase) {
    let (store, _) = Store::open(&Settings {
        journal_queue_bytes_max: 1_000,
        ..database.settings()
    })
    .unwrap();
    for (n, bytes) in [(1, 800), (2, 1_001), (3, 800)] {
        store.journal_append(JournalRow {
            response_body: Some("b".repeat(bytes).into()),
            ..row(n, now())
        });
        store.flush().await.unwrap();
    }
    let found = store.journal(JournalQuery::default()).await.unwrap();
    let kept = |index: usize| found[index].row.response_body.is_some();
    assert_eq!([kept(0), kept(1), kept(2)], [true, false, true]);
    let stats = store.stats();
    assert_eq!(
        (stats.journal_dropped, stats.journal_bodies_dropped),
        (0, 1)
    );
}

pub(crate) async fn bodies_are_cut(database: &TestDatabase) {
    let store = database.open();
    let body: Box<str> = "é".repeat(BODY_BYTES_MAX).into();
    store.journal_append(JournalRow {
        request_body: Some(body),
        ..row(1, now())
    });
    store.flush().await.unwrap();
    let found = store.journal(JournalQuery::default()).await.unwrap();
    let kept = found[0].row.request_body.as_ref().unwrap();
    assert_eq!(kept.len(), BODY_BYTES_MAX);
    assert!(kept.chars().all(|c| c == 'é'));
}
