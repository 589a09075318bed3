//! Tests moving a whole store to the other database and back.

use std::time::Duration;

use ledger::{DAY_MS, UnixMs};
use store::{
    Digest, Dimension, JournalQuery, JournalRow, KeyChange, ModelList, NewSignInCode, OpenError,
    PeriodLength, Progress, Role, Store, TransferError, TransferReport, UsageQuery, UsageStep,
    move_store,
};

use crate::test_database::{
    NOW, TestDatabase, actor, admit, assert_clean, credits, funded, price, released, settled,
    wallet,
};
use crate::{access, catalogs, costs, keys, sessions, tasks, usage, windows};

const HOUR: Duration = Duration::from_secs(3_600);

/// A fresh database of the other kind, or of the same kind if there is no server.
pub(crate) fn other(database: &TestDatabase) -> TestDatabase {
    match database {
        TestDatabase::Sqlite(_) => {
            TestDatabase::postgres().unwrap_or_else(|| TestDatabase::like(database))
        }
        TestDatabase::Postgres(_) => TestDatabase::sqlite().unwrap(),
    }
}

async fn relocate(from: &TestDatabase, to: &TestDatabase) -> Result<TransferReport, TransferError> {
    move_store(&from.settings(), &to.settings(), |_| ()).await
}

/// Writes rows to almost every table. The tables of alerts stay empty.
pub(crate) async fn fill(database: &TestDatabase) {
    let store = usage::kept(database);
    let version = price(&store).await;
    let acme = wallet(&store, "acme", credits(50)).await;
    let limited = keys::key_with(&store, acme.id, "limited", &["a", "b"]).await;
    let change = KeyChange {
        models: Some(ModelList::new(["story/*"]).unwrap()),
        window: Some(Some(windows::window(
            40,
            PeriodLength::Day,
            "Europe/Berlin",
        ))),
        rpm: Some(Some(1_000)),
        ..KeyChange::default()
    };
    store
        .update_key(limited.id, change, &actor())
        .await
        .unwrap();
    let rotation = keys::rotation("anew", Some(UnixMs::new(NOW.get() * 2)));
    store
        .rotate_key(limited.id, rotation, &actor())
        .await
        .unwrap();
    let cost = costs::version(&store, "near").await;
    for tokens in 1_000..1_030 {
        let hold = admit(&store, &limited, credits(1)).await.unwrap().hold;
        let close = settled(hold, version, tokens);
        let half = i64::try_from(tokens.div_ceil(2)).unwrap();
        store.close(costs::costing(close, Some(costs::cost(cost, half).into())));
    }
    let talking = funded(&store, credits(5)).await;
    let voice = sessions::price(&store).await;
    let hold = admit(&store, &talking, credits(1)).await.unwrap().hold;
    store
        .step_session(sessions::step(hold, voice, 10, 30))
        .await
        .unwrap();
    store.close(sessions::settled(hold, voice, 12));
    let ended = tasks::open(&store, &talking, HOUR).await;
    assert!(tasks::accept(&store, ended.claim).await);
    let claimed = tasks::claim(&store, HOUR).await;
    assert!(tasks::end(&store, &ended, claimed[0].claim).await);
    let open = tasks::open(&store, &limited, HOUR).await;
    assert!(tasks::accept(&store, open.claim).await);
    let token = access::token(&store, "one", Role::Owner).await;
    let by = access::opened_by(&token, "one");
    assert!(access::open(&store, "cookie", HOUR, by).await);
    let code = NewSignInCode {
        digest: Digest::of(b"code"),
        name: "somebody".to_owned(),
        role: Role::Viewer,
        lifetime: HOUR,
    };
    store.create_sign_in_code(code, &actor()).await.unwrap();
    assert_eq!(catalogs::replace(&store, 0, "{}").await, Some(1));
    let now = usage::now();
    let mut rows = usage::rows(7, now);
    rows.push(JournalRow {
        at: now,
        model: "a/\u{fffd}".into(),
        status: 404,
        request_body: Some("körper".into()),
        ..JournalRow::default()
    });
    usage::write(&store, &rows).await;
    store.flush().await.unwrap();
    assert_clean(&store).await;
    // Brings the journal into the state that a killed server leaves on SQLite: some counts are not in the roll-ups yet.
    // The last statement fills a table that otherwise only an upgrade fills.
    database.tamper_journal(database.sql_for(
        "CREATE TABLE left_counts AS SELECT counts FROM usage_pending",
        "",
    ));
    drop(store);
    database.tamper_journal(database.sql_for(
        "INSERT INTO usage_pending (counts) SELECT counts FROM left_counts; DROP TABLE left_counts",
        "",
    ));
    database.tamper_journal("INSERT INTO usage_long_steps VALUES (1)");
}

fn all_tasks() -> store::TaskQuery {
    store::TaskQuery {
        limit: 100,
        ..store::TaskQuery::default()
    }
}

/// The contents of a store, as people and programs see them.
pub(crate) async fn seen(store: &Store) -> String {
    let entries = store.entries(store::EntryQuery::default()).await.unwrap();
    let journal = store.journal(JournalQuery {
        limit: 10_000,
        ..JournalQuery::default()
    });
    let audit = store.audit(store::AuditQuery::default()).await.unwrap();
    let now = usage::now();
    let day = |ms| UsageStep::Day.start_of(now.minus_ms(ms));
    let mut query = UsageQuery::between(day(100 * DAY_MS), day(-DAY_MS), now);
    query.by = vec![Dimension::Model, Dimension::Channel];
    query.step = Some(UsageStep::Day);
    let by_account = UsageQuery {
        by: vec![Dimension::Wallet, Dimension::Key],
        ..query.clone()
    };
    let usage = (
        store.usage(query).await.unwrap(),
        store.usage(by_account).await.unwrap(),
    );
    let wallets = store.wallets().await.unwrap();
    let keys = store.keys(None).await.unwrap();
    let tasks = store.tasks(all_tasks()).await.unwrap();
    let tokens = store.tokens(store::TokenQuery::default()).await.unwrap();
    format!(
        "{wallets:#?} {keys:#?} {entries:#?} {tasks:#?} {tokens:#?} {audit:#?} {:#?} {usage:#?} {:#?}",
        journal.await.unwrap(),
        store.latest_catalog().await.unwrap()
    )
}

pub(crate) async fn everything_arrives_and_comes_back(database: &TestDatabase) {
    fill(database).await;
    let before = seen(&database.attach()).await;
    let (there, back) = (other(database), TestDatabase::like(database));
    let mut last = None;
    let (from, to) = (database.settings(), there.settings());
    let report = move_store(&from, &to, |progress| last = Some(progress)).await;
    let report = report.unwrap();
    assert_eq!(
        last.map(|it: Progress| (it.step, it.done)),
        Some(("verify", report.rows()))
    );
    assert!(!report.resumed && !report.already_done);
    assert_eq!(report.abandoned, 0);
    // PostgreSQL's own clock puts all entries into one day, which has no stored balance yet.
    let may_be_empty = [
        "usage_uncounted",
        database.sql_for("", "balance_points"),
        // `fill` creates neither alerts nor rules for them.
        "alert_rules",
        "alerts",
        "alert_deliveries",
    ];
    for (table, rows) in &report.tables {
        let is_filled = *rows > 0 || may_be_empty.contains(table);
        assert!(is_filled, "{table} is empty");
    }
    let verified = database.attach().verify().await.unwrap();
    assert_eq!(report.heads, verified.heads);
    assert_eq!(report.totals.entries, verified.entries);
    let after = seen(&there.attach()).await;
    assert_eq!(before, after);
    // Running the same command again finds nothing left to do.
    assert!(relocate(database, &there).await.unwrap().already_done);
    relocate(&there, &back).await.unwrap();
    assert_eq!(database.contents(), back.contents());
    let store = back.attach();
    assert_eq!(before, seen(&store).await);
    assert_clean(&store).await;
}

pub(crate) async fn a_moved_store_goes_on_where_it_was(database: &TestDatabase) {
    fill(database).await;
    let there = other(database);
    relocate(database, &there).await.unwrap();
    let store = usage::kept(&there);
    // The secret from before the last rotation still works, and new rows get new numbers.
    let key = store.key_by_digest(&Digest::of(b"limited")).await.unwrap();
    let key = store.find_key(&key.unwrap().key).await.unwrap().unwrap();
    let version = price(&store).await;
    let hold = admit(&store, &key, credits(1)).await.unwrap().hold;
    store.close(settled(hold, version, 5));
    let new = funded(&store, credits(1)).await;
    let hold = admit(&store, &new, credits(1)).await.unwrap().hold;
    store.close(released(hold));
    store.price_version("story/new", "{}").await.unwrap();
    costs::version(&store, "far").await;
    access::token(&store, "two", Role::Viewer).await;
    assert_eq!(catalogs::replace(&store, 1, "{}").await, Some(2));
    let rows = usage::rows(8, usage::now());
    usage::write(&store, &rows).await;
    // Both tasks are listed, the ended one and the open one.
    let tasks = store.tasks(all_tasks()).await.unwrap();
    assert_eq!(tasks.tasks.len(), 2);
    drop(store);
    let store = there.open();
    assert_clean(&store).await;
}

pub(crate) async fn a_source_in_use_is_refused(database: &TestDatabase) {
    let there = other(database);
    let missing = relocate(database, &there).await;
    assert!(
        matches!(missing, Err(TransferError::Missing { .. })),
        "{missing:?}"
    );
    let store = database.open();
    funded(&store, credits(1)).await;
    let running = relocate(database, &there).await;
    assert!(
        matches!(running, Err(TransferError::Running { .. })),
        "{running:?}"
    );
    drop(store);
    let same = relocate(database, database).await;
    assert!(
        matches!(same, Err(TransferError::SamePlace { .. })),
        "{same:?}"
    );
    assert_eq!(relocate(database, &there).await.unwrap().totals.wallets, 1);
}

pub(crate) async fn calls_that_were_open_are_abandoned_at_the_destination(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(10)).await;
    let admitted = admit(&store, &key, credits(3)).await.unwrap();
    admitted.durable.wait().await.unwrap();
    drop(store);
    let there = other(database);
    let report = relocate(database, &there).await.unwrap();
    assert_eq!(report.abandoned, 1);
    let store = there.attach();
    let (wallet, key) = store.balance(&key.id).await.unwrap();
    assert_eq!((wallet.frozen.get(), key.open_holds), (0, 0));
    assert_eq!(wallet.balance, credits(10));
    assert_clean(&store).await;
}

pub(crate) async fn only_an_empty_destination_is_filled(database: &TestDatabase) {
    let there = other(database);
    funded(&database.open(), credits(1)).await;
    let key = funded(&there.open(), credits(2)).await;
    let refused = relocate(database, &there).await;
    let Err(TransferError::NotEmpty { tables, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        tables.contains("wallets") && tables.contains("audit"),
        "{tables}"
    );
    let (wallet, _) = there.attach().balance(&key.id).await.unwrap();
    assert_eq!(wallet.balance, credits(2));
}

pub(crate) async fn a_destination_of_an_earlier_version_is_upgraded_only_if_it_is_empty(
    database: &TestDatabase,
) {
    funded(&database.open(), credits(1)).await;
    let (there, empty) = (other(database), other(database));
    there.migrate_to(6).await;
    there.tamper(
        "INSERT INTO wallets (id, name, status, created_at)
         VALUES ('wal_0123456789abcdef', 'old', 'active', 1)",
    );
    let refused = relocate(database, &there).await;
    let Err(TransferError::NotEmpty { tables, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(tables, "wallets");
    // The destination was not upgraded: this succeeds only if the table of a later version does not exist.
    there.tamper("CREATE TABLE alert_rules (n INTEGER)");
    if let TestDatabase::Postgres(_) = &empty {
        empty.migrate_to(6).await;
        empty.tamper(
            "INSERT INTO nodes (name, started_at, lease_until) VALUES ('old', 1, 4102444800000)",
        );
        let refused = relocate(database, &empty).await;
        assert!(
            matches!(refused, Err(TransferError::Running { .. })),
            "{refused:?}"
        );
        empty.tamper(
            "CREATE TABLE alert_rules (n INTEGER); DROP TABLE alert_rules; DELETE FROM nodes",
        );
    }
    empty.migrate_to(6).await;
    assert_eq!(relocate(database, &empty).await.unwrap().totals.wallets, 1);
}

pub(crate) async fn an_unfinished_move_is_opened_by_nobody_and_goes_on(database: &TestDatabase) {
    fill(database).await;
    let there = other(database);
    // The move is stopped when the entries have arrived, before the next table.
    let mut stopped = false;
    let stop = std::panic::AssertUnwindSafe(async {
        move_store(&database.settings(), &there.settings(), |progress| {
            assert!(progress.step != "balance_points", "stopped here");
        })
        .await
    });
    if let Err(panic) = futures_util::FutureExt::catch_unwind(stop).await {
        stopped = panic.downcast_ref::<&str>() == Some(&"stopped here");
    }
    assert!(stopped);
    for opened in [
        Store::open(&there.settings()).map(drop),
        Store::attach(&there.settings()).map(drop),
        relocate(&there, &TestDatabase::like(database))
            .await
            .map(drop)
            .map_err(|error| match error {
                TransferError::Open(error) => error,
                other => panic!("{other}"),
            }),
    ] {
        assert!(
            matches!(opened, Err(OpenError::UnfinishedMove { .. })),
            "{opened:?}"
        );
    }
    // The move cannot be continued from another source.
    let stranger = TestDatabase::like(database);
    funded(&stranger.open(), credits(1)).await;
    let refused = relocate(&stranger, &there).await;
    assert!(
        matches!(refused, Err(TransferError::OtherSource { .. })),
        "{refused:?}"
    );
    let report = relocate(database, &there).await.unwrap();
    assert!(report.resumed);
    assert_eq!(seen(&database.attach()).await, seen(&there.attach()).await);
}

pub(crate) async fn a_ledger_that_is_not_right_is_not_moved(database: &TestDatabase) {
    funded(&database.open(), credits(1)).await;
    database.tamper("UPDATE wallets SET balance = balance + 1");
    let there = other(database);
    let refused = relocate(database, &there).await;
    let Err(TransferError::Unclean { report, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(report.differences.len(), 1);
    // The destination can be used for another store.
    funded(&there.open(), credits(1)).await;
}

pub(crate) async fn a_text_that_a_server_cannot_store_is_replaced_in_the_journal_alone(
    database: &TestDatabase,
) {
    let Some(there) = TestDatabase::postgres() else {
        return;
    };
    let store = usage::kept(database);
    funded(&store, credits(1)).await;
    let now = usage::now();
    let rows = ["a/\u{0}", "a/\u{fffd}"].map(|model| JournalRow {
        at: now,
        model: model.into(),
        channel: Some("one".into()),
        status: 200,
        ..JournalRow::default()
    });
    usage::write(&store, &rows).await;
    drop(store);
    relocate(database, &there).await.unwrap();
    let store = there.attach();
    let day = |ms| UsageStep::Day.start_of(now.minus_ms(ms));
    let mut query = UsageQuery::between(day(0), day(-DAY_MS), now);
    query.by = vec![Dimension::Model];
    let models = store.usage(query).await.unwrap();
    let counts: Vec<u64> = models.iter().map(|row| row.totals.requests).collect();
    assert_eq!(counts, [1, 1], "{models:?}");
    for entry in store.journal(JournalQuery::default()).await.unwrap() {
        assert_eq!(&*entry.row.model, "a/\u{fffd}");
    }
    // The ledger's texts are hashed, so no character in them is replaced.
    database.tamper("UPDATE wallets SET name = 'a' || char(0) || 'b'");
    let refused = relocate(database, &TestDatabase::like(&there)).await;
    let Err(TransferError::Text { table, column }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((table, column), ("wallets", "name"));
}
