//! Tests statements: running balances, time ranges, totals, and the balances that an upgrade computes.

use ledger::{DAY_MS, Micro, UnixMs};
use store::{
    BalancePoint, Balances, Close, EntryKind, EntryQuery, EntryRow, StatementEntry, Store,
    WalletId, WalletQuery,
};

use crate::test_database::{
    TestDatabase, actor, admit, assert_clean, credits, funded, price, settled, wallet,
};

/// The beginning of a day.
const START: i64 = 20_000 * DAY_MS;

/// All entries of a wallet, in order.
async fn recorded(store: &Store, wallet: WalletId) -> Vec<EntryRow> {
    let mut all: Vec<EntryRow> = Vec::new();
    loop {
        let query = EntryQuery {
            wallet: Some(wallet),
            after: all.last().map(|entry| entry.cursor),
            ..EntryQuery::default()
        };
        let page = store.entries(query).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// The state after each entry, computed from the first entry on.
fn recomputed(entries: &[EntryRow]) -> Vec<BalancePoint> {
    let mut at = UnixMs::new(0);
    let (mut balances, mut charged) = (Balances::default(), 0);
    let point = |entry: &EntryRow| {
        at = at.max(entry.at);
        balances = balances.after(&entry.delta);
        charged += entry.charge.get();
        BalancePoint {
            seq: entry.seq,
            posted_at: at,
            balances,
            charged: Micro::new(charged),
        }
    };
    entries.iter().map(point).collect()
}

/// Compares everything that statements report with the entries.
async fn assert_statements(store: &Store, wallet: WalletId) {
    let entries = recorded(store, wallet).await;
    let points = recomputed(&entries);
    let same = |listed: &StatementEntry, index: usize| {
        assert_eq!(listed.entry, entries[index]);
        assert_eq!(
            listed.after,
            points[index].balances,
            "after entry {}",
            index + 1
        );
    };
    let count = i64::try_from(entries.len()).unwrap();
    for (before, limit) in [
        (None, 7),
        (Some(1), 50),
        (Some(2), 50),
        (Some(count), 3),
        (Some(count / 2), 40),
        (Some(1_026), 5),
        (Some(count + 9), 1_300),
    ] {
        let page = store.latest_entries(wallet, before, limit).await.unwrap();
        let end = before.map_or(count, |before| (before - 1).min(count));
        let first = (end - i64::from(limit)).max(0);
        let numbers: Vec<i64> = page.iter().map(|listed| listed.entry.seq).collect();
        assert_eq!(numbers, (first + 1..=end).rev().collect::<Vec<_>>());
        for listed in &page {
            same(listed, usize::try_from(listed.entry.seq - 1).unwrap());
        }
    }
    for seq in [0, 1, count, count + 1] {
        let found = store.find_entry(wallet, seq).await.unwrap();
        assert_eq!(found.is_some(), (1..=count).contains(&seq), "{seq}");
    }
    let (first, last) = (points[0].posted_at, points[points.len() - 1].posted_at);
    let span = last.ms_since(first).max(8);
    for (from, to) in [
        (None, None),
        (Some(first), Some(last)),
        (Some(first), Some(last.plus_ms(1))),
        (Some(first.plus_ms(span / 3)), Some(first.plus_ms(span / 2))),
        (Some(first.plus_ms(span / 4)), None),
        (Some(last.plus_ms(1)), None),
        (Some(last), Some(first)),
        (None, Some(first)),
    ] {
        assert_range(store, wallet, &entries, &points, from, to).await;
    }
}

async fn assert_range(
    store: &Store,
    wallet: WalletId,
    entries: &[EntryRow],
    points: &[BalancePoint],
    from: Option<UnixMs>,
    to: Option<UnixMs>,
) {
    let range = store.statement_range(wallet, from, to).await.unwrap();
    let before = |time: Option<UnixMs>, none: usize| {
        time.map_or(none, |time| {
            points.partition_point(|point| point.posted_at < time)
        })
    };
    let first = before(from, 0);
    let end = before(to, points.len()).max(first);
    let state = |count: usize| match count {
        0 => BalancePoint::default(),
        count => points[count - 1],
    };
    assert_eq!(
        (range.opening, range.closing),
        (state(first), state(end)),
        "{from:?} {to:?}"
    );
    let page = store.statement_entries(wallet, range.opening.seq, range.closing.seq, 4_096);
    let page = page.await.unwrap();
    let rows: Vec<&EntryRow> = page.iter().map(|listed| &listed.entry).collect();
    assert_eq!(rows, entries[first..end].iter().collect::<Vec<_>>());
    for (listed, point) in page.iter().zip(&points[first..end]) {
        assert_eq!(listed.after, point.balances);
    }
    let totals = store.statement_totals(wallet, &range).await.unwrap();
    let change: i64 = totals.kinds.iter().map(|it| it.total.get()).sum();
    let (opening, closing) = (
        range.opening.balances.total(),
        range.closing.balances.total(),
    );
    assert_eq!(change, closing.get() - opening.get());
    let charged: i64 = totals.keys.iter().map(|it| it.charged.get()).sum();
    assert_eq!(
        charged,
        range.closing.charged.get() - range.opening.charged.get()
    );
    let calls: u64 = totals.keys.iter().map(|it| it.calls).sum();
    let ended = |entry: &&EntryRow| entry.call.is_some() && entry.kind != EntryKind::Part;
    assert_eq!(
        calls,
        entries[first..end].iter().filter(ended).count() as u64
    );
}

/// Makes calls over some days, some of which end out of order. `PostgreSQL` uses its own time for entries.
async fn calls(store: &Store, balance: Micro, count: i64) -> WalletId {
    let version = price(store).await;
    let key = funded(store, balance).await;
    for n in 0..count {
        let admitted = admit(store, &key, Micro::new(10)).await.unwrap();
        let jitter = (n * 7_919) % 7_200_000;
        store.close(Close {
            now: UnixMs::new(START + n * DAY_MS / 100 - jitter),
            ..settled(admitted.hold, version, 1 + (n % 9).unsigned_abs())
        });
        // Flushes from time to time, so that the entries are in several batches.
        if n % 10 == 0 {
            store.flush().await.unwrap();
        }
    }
    store.flush().await.unwrap();
    key.wallet
}

pub(crate) async fn a_statement_tells_the_balance_after_each_entry(database: &TestDatabase) {
    let store = database.open();
    let other = funded(&store, credits(1)).await;
    let wallet = calls(&store, credits(3), 350).await;
    store
        .top_up(other.wallet, credits(1), "", &actor())
        .await
        .unwrap();
    store
        .gift(wallet, credits(2), "welcome", &actor())
        .await
        .unwrap();
    store
        .set_credit_limit(wallet, credits(4), &actor())
        .await
        .unwrap();
    assert_statements(&store, wallet).await;
    assert_statements(&store, other.wallet).await;
    let missing = store.latest_entries(WalletId::random(), None, 5).await;
    assert!(matches!(missing, Err(store::StoreError::NotFound { .. })));
    assert_clean(&store).await;
}

pub(crate) async fn a_long_statement_is_read_from_its_middle(database: &TestDatabase) {
    let store = database.open();
    let wallet = calls(&store, credits(3), 2_100).await;
    assert_statements(&store, wallet).await;
    assert_clean(&store).await;
    // The result is the same after a restart and with more entries.
    drop(store);
    let store = database.open();
    store
        .top_up(wallet, credits(1), "", &actor())
        .await
        .unwrap();
    assert_statements(&store, wallet).await;
    assert_clean(&store).await;
}

pub(crate) async fn wallets_are_listed_with_what_they_spent(database: &TestDatabase) {
    let store = database.open();
    let wallet = calls(&store, credits(3), 250).await;
    for n in 0..7 {
        crate::test_database::wallet(&store, &format!("Spare 100% {n}"), credits(1)).await;
    }
    let points = recomputed(&recorded(&store, wallet).await);
    let spent = |since: UnixMs| {
        let count = points.partition_point(|point| point.posted_at < since);
        let before = if count == 0 {
            0
        } else {
            points[count - 1].charged.get()
        };
        Micro::new(points[points.len() - 1].charged.get() - before)
    };
    let end = points[points.len() - 1].posted_at.get();
    for (day, month) in [
        (end - end % DAY_MS, START),
        (START, START + DAY_MS),
        (end + DAY_MS, 0),
    ] {
        let (day, month) = (UnixMs::new(day - day % DAY_MS), UnixMs::new(month));
        let query = WalletQuery {
            day,
            month,
            ..WalletQuery::default()
        };
        let spending = store
            .find_spending(wallet, query.clone())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (spending.spent_today, spending.spent_this_month),
            (spent(day), spent(month))
        );
        let all = store.list_wallets(query).await.unwrap();
        let listed = all.iter().find(|listed| listed.row.id == wallet).unwrap();
        assert_eq!(
            (listed.spent_today, listed.cursor),
            (spent(day), spending.cursor)
        );
        assert_eq!(all.len(), 8);
        assert!(all.is_sorted_by(|a, b| a.cursor > b.cursor));
    }
    for (text, count) in [
        ("spare", 7),
        ("100% 3", 1),
        ("%", 7),
        ("_", 0),
        (&*wallet.to_string(), 1),
        (&wallet.to_string()[..4], 8),
        ("nobody", 0),
    ] {
        let mut found = Vec::new();
        loop {
            let query = WalletQuery {
                text: Some(text.to_owned()),
                after: found.last().copied(),
                limit: 2,
                ..WalletQuery::default()
            };
            let page = store.list_wallets(query).await.unwrap();
            if page.is_empty() {
                break;
            }
            found.extend(page.iter().map(|listed| listed.cursor));
        }
        assert_eq!(found.len(), count, "{text}");
    }
    let nobody = store.find_spending(WalletId::random(), WalletQuery::default());
    assert!(nobody.await.unwrap().is_none());
}

pub(crate) async fn the_history_has_every_day_with_entries(database: &TestDatabase) {
    let store = database.open();
    let wallet = calls(&store, credits(3), 350).await;
    let points = recomputed(&recorded(&store, wallet).await);
    let day = |at: UnixMs| at.get() / DAY_MS;
    for since in [
        UnixMs::new(0),
        UnixMs::new(START + DAY_MS),
        points[points.len() - 1].posted_at.plus_ms(DAY_MS),
    ] {
        let history = store.balance_history(wallet, since).await.unwrap();
        assert!(history.is_sorted_by_key(|point| point.seq));
        for point in &history {
            assert_eq!(*point, points[usize::try_from(point.seq - 1).unwrap()]);
        }
        // The history contains the last state of each day.
        for pair in points
            .windows(2)
            .filter(|pair| day(pair[0].posted_at) < day(pair[1].posted_at))
        {
            assert!(pair[0].posted_at < since || history.contains(&pair[0]));
        }
        assert_eq!(history.last(), points.last());
    }
}

/// A ledger with the schema before statements, with calls and gifts on several days.
pub(crate) async fn an_upgrade_computes_the_balances_of_old_entries(database: &TestDatabase) {
    let id = WalletId::random();
    database
        .migrate_to(database.sql_for("7", "6").parse().unwrap())
        .await;
    let numbers = database.sql_for(
        "(WITH RECURSIVE s (seq) AS (SELECT 2 UNION ALL SELECT seq + 1 FROM s WHERE seq < 2200) SELECT seq FROM s)",
        "generate_series(2::bigint, 2200) AS s (seq)",
    );
    let key_state = database.sql_for(
        "INSERT INTO key_states VALUES (1, 5 * 1100, 0, 0, 0, 0);",
        "UPDATE keys SET usage = 5 * 1100;",
    );
    let override_n = database.sql_for("", "OVERRIDING SYSTEM VALUE");
    database.tamper(&format!(
        "INSERT INTO wallets (n, id, name, status, balance, gift_balance, entries, holds_opened, created_at)
         {override_n} VALUES (1, '{id}', 'old', 'active', 90000 - 5 * 1100, 1099, 2200, 1100, {START});
         INSERT INTO keys (n, id, wallet, digest, shown_prefix, created_at) {override_n}
         VALUES (1, 'key_0123456789abcdef', 1, {digest}, 'sk-tg-old', {START});
         {key_state}
         INSERT INTO price_versions (id, model, card, created_at) {override_n} VALUES (1, 'm', '{{\"input\":\"1\"}}', 0);
         INSERT INTO entries (wallet, seq, kind, at, charge, balance_delta, gift_delta, credit_delta, note)
         VALUES (1, 1, 'top_up', {START}, 0, 90000, 0, 0, 'paid');
         INSERT INTO entries (wallet, seq, kind, at, closes, key, held, charge, balance_delta, gift_delta, credit_delta,
             opened_at, request_id, meter, price_version, basis)
         SELECT 1, seq, CASE seq % 2 WHEN 0 THEN 'settled' ELSE 'gift' END,
             {START} + seq * 1200000 - (seq % 7) * 600000,
             CASE seq % 2 WHEN 0 THEN seq END, CASE seq % 2 WHEN 0 THEN 1 END, CASE seq % 2 WHEN 0 THEN 6 END,
             CASE seq % 2 WHEN 0 THEN 5 ELSE 0 END, CASE seq % 2 WHEN 0 THEN -5 ELSE 0 END, seq % 2, 0,
             CASE seq % 2 WHEN 0 THEN {START} END, CASE seq % 2 WHEN 0 THEN 'req' END,
             CASE seq % 2 WHEN 0 THEN '{{\"input\":5}}' END, CASE seq % 2 WHEN 0 THEN 1 END,
             CASE seq % 2 WHEN 0 THEN 'reported' END
         FROM {numbers} ORDER BY seq;",
        digest = database.sql_for("zeroblob(32)", "decode(repeat('00', 32), 'hex')"),
    ));
    let store = database.open();
    assert_clean(&store).await;
    assert_statements(&store, id).await;
    store
        .top_up(id, credits(1), "after the upgrade", &actor())
        .await
        .unwrap();
    assert_statements(&store, id).await;
    assert_clean(&store).await;
}

/// The ends of a range may be any numbers, and a wallet need not have entries.
pub(crate) async fn any_range_of_an_empty_wallet_is_empty(database: &TestDatabase) {
    let store = database.open();
    let empty = wallet(&store, "empty", Micro::ZERO).await.id;
    let full = wallet(&store, "full", credits(1)).await.id;
    let ends = [
        None,
        Some(i64::MIN),
        Some(-1),
        Some(0),
        Some(1),
        Some(i64::MAX),
    ];
    for from in ends {
        for to in ends {
            for account in [empty, full] {
                let (from, to) = (from.map(UnixMs::new), to.map(UnixMs::new));
                let range = store.statement_range(account, from, to).await.unwrap();
                assert!(range.opening.seq <= range.closing.seq, "{from:?} {to:?}");
                assert!(account == full || range.closing.seq == 0, "{from:?} {to:?}");
            }
        }
    }
}
