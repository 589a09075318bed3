//! Tests a database that is unreachable, short of a resource or read-only. An unknown key is not refused, a node that
//! cannot serve calls is not ready, causes are described, and no journal row of a charged call is lost.

use std::collections::BTreeMap;

use ledger::Micro;
use store::{
    AdmitError, HoldId, JournalQuery, JournalRow, NewWallet, OpenError, Settings, Store, StoreError,
};

use crate::faults::Rig;
use crate::faulty_proxy::Mode;
use crate::test_database::{
    NOW, TestDatabase, actor, admit, assert_clean, credits, eventually, funded, price, released,
};

/// The settings of a node that connects to this server, with its role.
fn settings_of(database: &TestDatabase, server: store::Server) -> Settings {
    Settings {
        location: store::Location::Server(server),
        ..database.settings()
    }
}

pub(crate) async fn a_key_that_was_not_met_before_is_not_refused_while_the_database_is_away(
    database: &TestDatabase,
) {
    let rig = Rig::new(database).await;
    let unmet = funded(&rig.store, credits(1)).await;
    for away in [Mode::Cut, Mode::BlackHole] {
        rig.proxy.set(away);
        let refused = admit(&rig.store, &unmet, credits(1)).await.unwrap_err();
        assert!(
            matches!(refused, AdmitError::Busy | AdmitError::Unavailable),
            "{away:?}: {refused:?}"
        );
        rig.proxy.set(Mode::Pass);
        rig.recovers().await;
    }
    let admitted = admit(&rig.store, &unmet, credits(1)).await.unwrap();
    rig.store.close(released(admitted.hold));
    assert_clean(&rig.store).await;
}

/// The node's connections are closed, and new ones are refused.
pub(crate) async fn a_node_without_connections_says_so_and_refuses_no_key(database: &TestDatabase) {
    let guest = database.guest();
    let (store, _) = Store::open(&settings_of(database, guest.server())).unwrap();
    let unmet = funded(&store, credits(1)).await;
    eventually("health", async || store.healthy()).await;

    guest.alter("CONNECTION LIMIT 0");
    let refused = admit(&store, &unmet, credits(1)).await.unwrap_err();
    assert_eq!(refused, AdmitError::Unavailable);
    // The node must notice this without a call, because a load balancer sends no calls to a node that is not ready.
    eventually("that the node is not ready", async || !store.healthy()).await;
    let cause = store.find_wallet("nobody").await.unwrap_err();
    assert!(cause.is_temporary(), "{cause}");
    let cause = cause.to_string();
    assert!(
        cause.contains("too many connections (max_connections") && cause.contains("for role"),
        "{cause}"
    );

    guest.alter("CONNECTION LIMIT -1");
    eventually("that the node is ready again", async || store.healthy()).await;
    let admitted = admit(&store, &unmet, credits(1)).await.unwrap();
    store.close(released(admitted.hold));
    assert_clean(&store).await;
}

pub(crate) async fn a_role_that_may_not_write_is_told_in_words(database: &TestDatabase) {
    let guest = database.guest();
    let settings = settings_of(database, guest.server());
    let (store, _) = Store::open(&settings).unwrap();
    let key = funded(&store, credits(1)).await;
    guest.alter("SET default_transaction_read_only = on");
    eventually("that the node is not ready", async || !store.healthy()).await;
    assert_eq!(
        admit(&store, &key, credits(1)).await.unwrap_err(),
        AdmitError::Unavailable
    );
    let refused = Store::open(&settings).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Away { .. }), "{refused}");
    let text = refused.to_string();
    assert!(
        text.contains("read-only") && text.contains("standby"),
        "{text}"
    );
    guest.alter("RESET default_transaction_read_only");
    eventually("that the node is ready again", async || store.healthy()).await;
    let admitted = admit(&store, &key, credits(1)).await.unwrap();
    store.close(released(admitted.hold));
}

/// A trigger raises the error that the server raises when a file cannot grow.
pub(crate) async fn a_full_disk_is_told_in_words_and_the_node_is_not_ready(
    database: &TestDatabase,
) {
    let store = database.open();
    let key = funded(&store, credits(1)).await;
    database.tamper(
        "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
         END $$;
         CREATE TRIGGER no_room BEFORE INSERT ON holds FOR EACH ROW EXECUTE FUNCTION no_room();
         CREATE TRIGGER no_room BEFORE INSERT ON wallets FOR EACH ROW EXECUTE FUNCTION no_room()",
    );
    let new = NewWallet {
        name: "no room".to_owned(),
        balance: Micro::ZERO,
        gift: Micro::ZERO,
        credit_limit: Micro::ZERO,
    };
    let cause = store.create_wallet(new, &actor()).await.unwrap_err();
    assert!(matches!(cause, StoreError::Away(_)), "{cause}");
    let cause = cause.to_string();
    assert!(
        cause.contains("the server's disk is full: could not extend file")
            && cause.contains("SQLSTATE 53100"),
        "{cause}"
    );
    let admitted = admit(&store, &key, credits(1)).await.unwrap();
    assert!(admitted.durable.wait().await.is_err());
    store.close(released(admitted.hold));
    // The node stays not ready while there are no calls.
    for _ in 0..50 {
        assert!(!store.healthy());
        tokio::task::yield_now().await;
    }
    database.tamper("DROP TRIGGER no_room ON holds; DROP TRIGGER no_room ON wallets");
    eventually("that the node is ready again", async || store.healthy()).await;
    assert_clean(&store).await;
}

pub(crate) async fn wrong_credentials_are_no_outage(database: &TestDatabase) {
    let Settings {
        location: store::Location::Server(server),
        ..
    } = database.settings()
    else {
        panic!("a server is needed");
    };
    for (from, to, words) in [
        (
            "tollgate@",
            "nobody_of_this_name@",
            "does not let this role in",
        ),
        (
            "/postgres?",
            "/no_such_database?",
            "there is no such database",
        ),
    ] {
        let elsewhere = store::Server::at(server.url.replace(from, to));
        let refused = Store::open(&settings_of(database, elsewhere))
            .map(drop)
            .unwrap_err();
        assert!(matches!(refused, OpenError::Database { .. }), "{refused}");
        assert!(refused.to_string().contains(words), "{refused}");
    }
    let nowhere = store::Server::at("postgres://tollgate@127.0.0.1:1/postgres?sslmode=disable");
    let away = Store::open(&settings_of(database, nowhere))
        .map(drop)
        .unwrap_err();
    assert!(away.is_temporary(), "{away}");
    assert!(away.to_string().contains("refused"), "{away}");
}

fn row(number: i64, hold: Option<HoldId>) -> JournalRow {
    JournalRow {
        at: NOW,
        request_id: format!("req_{number}").as_str().into(),
        status: 200,
        hold,
        ..JournalRow::default()
    }
}

/// The number of times that each request appears in the journal.
async fn counted(store: &Store) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    let mut query = JournalQuery {
        limit: 1_000,
        ..JournalQuery::default()
    };
    loop {
        let page = store.journal(query.clone()).await.unwrap();
        let Some(last) = page.last() else {
            return counts;
        };
        query.before = Some(last.cursor);
        for entry in page {
            *counts.entry(entry.row.request_id.to_string()).or_default() += 1;
        }
    }
}

pub(crate) async fn journal_rows_of_billed_calls_outlive_an_outage(database: &TestDatabase) {
    const BILLED: i64 = 300;
    let rig = Rig::with(Settings {
        journal_queue_max: 400,
        ..database.settings()
    })
    .await;
    let hold = admit(&rig.store, &rig.key, Micro::ZERO).await.unwrap().hold;
    rig.proxy.set(Mode::Cut);
    // Calls that are refused meanwhile write rows too. They must not displace the rows of other calls.
    for number in 0..1_000 {
        rig.store.journal_append(row(10_000 + number, None));
    }
    for number in 0..BILLED {
        rig.store.journal_append(row(number, Some(hold)));
    }
    let flushing = tokio::spawn({
        let store = rig.store.clone();
        async move { store.flush().await }
    });
    eventually("tries", async || rig.proxy.turned_away() > 20).await;
    rig.proxy.set(Mode::Pass);
    flushing.await.unwrap().unwrap();
    let counts = counted(&rig.store).await;
    for number in 0..BILLED {
        assert_eq!(counts.get(&format!("req_{number}")), Some(&1), "{number}");
    }
    assert!(counts.values().all(|count| *count == 1));
    assert_eq!(rig.store.stats().journal_queue, 0);
    let kept = counts.len() as u64;
    assert_eq!(rig.store.stats().journal_dropped, 1_300 - kept);
}

/// A reader that follows the journal asks only for rows after the last one that it has read. So a row that is written
/// late must come after the rows that other nodes have written meanwhile.
pub(crate) async fn journal_rows_that_waited_stand_behind_those_that_did_not(
    database: &TestDatabase,
) {
    let rig = Rig::new(database).await;
    let other = database.open();
    let hold = admit(&rig.store, &rig.key, Micro::ZERO).await.unwrap().hold;
    let now = now();
    rig.proxy.set(Mode::Cut);
    rig.store.journal_append(JournalRow {
        at: now.minus_ms(60_000),
        ..row(1, Some(hold))
    });
    other.journal_append(JournalRow {
        at: now,
        ..row(2, None)
    });
    other.flush().await.unwrap();
    eventually("tries", async || rig.proxy.turned_away() > 20).await;
    rig.proxy.set(Mode::Pass);
    rig.store.flush().await.unwrap();
    let rows = other.journal(JournalQuery::default()).await.unwrap();
    let ids: Vec<&str> = rows.iter().map(|entry| &*entry.row.request_id).collect();
    assert_eq!(ids, ["req_1", "req_2"], "newest first");
    // A search by the time of the call still finds the row.
    let query = JournalQuery {
        until: Some(now.minus_ms(59_000)),
        ..JournalQuery::default()
    };
    assert_eq!(other.journal(query).await.unwrap().len(), 1);
}

fn now() -> ledger::UnixMs {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    ledger::UnixMs::new(i64::try_from(now.unwrap().as_millis()).unwrap())
}

/// A commit whose answer is lost has succeeded, so its rows must not be written again.
pub(crate) async fn journal_rows_are_not_doubled_by_a_lost_answer(database: &TestDatabase) {
    let rig = Rig::new(database).await;
    let hold = admit(&rig.store, &rig.key, Micro::ZERO).await.unwrap().hold;
    let mut lost = 0;
    let mut number = 0;
    // Other writers commit too. Of six lost answers, at least one is very likely the journal's.
    while lost < 6 {
        rig.proxy.set(Mode::LoseAnswerTo(b"COMMIT"));
        for _ in 0..3 {
            rig.store.journal_append(row(number, Some(hold)));
            number += 1;
        }
        rig.store.flush().await.unwrap();
        rig.proxy.set(Mode::Pass);
        lost = rig.proxy.lost();
    }
    let counts = counted(&rig.store).await;
    assert_eq!(counts.len(), usize::try_from(number).unwrap());
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!(rig.store.stats().journal_dropped, 0);
}

pub(crate) async fn a_journal_row_that_cannot_be_written_is_dropped_alone(database: &TestDatabase) {
    let store = database.open();
    price(&store).await;
    database.tamper("ALTER TABLE calls ADD CONSTRAINT no_teapots CHECK (status <> 418)");
    for number in 0..9 {
        let status = if number == 4 { 418 } else { 200 };
        store.journal_append(JournalRow {
            status,
            ..row(number, None)
        });
    }
    store.flush().await.unwrap();
    let counts = counted(&store).await;
    assert_eq!(counts.len(), 8, "{counts:?}");
    assert!(!counts.contains_key("req_4"));
    assert_eq!(store.stats().journal_dropped, 1);
}
