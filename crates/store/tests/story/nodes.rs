//! Tests several nodes on one database.

use std::time::Duration;

use ledger::Micro;
use store::{AdmitError, AdmittedCall, KeyLimits, KeyRow, OpenError, Server, Settings, Store};

use crate::test_database::{
    TestDatabase, admit, assert_clean, credits, eventually, funded, key, price, released, settled,
    wallet,
};

pub(crate) fn named(database: &TestDatabase, node: &str) -> Settings {
    let mut settings = database.settings();
    if let store::Location::Server(server) = &mut settings.location {
        *server = Server {
            node: Some(node.to_owned()),
            ..server.clone()
        };
    }
    settings
}

pub(crate) async fn a_node_of_the_same_name_is_refused(database: &TestDatabase) {
    let (first, _) = Store::open(&named(database, "one")).unwrap();
    let refused = Store::open(&named(database, "one")).unwrap_err();
    assert!(
        matches!(refused, OpenError::NodeRunning { .. }),
        "{refused}"
    );
    // The first node continues, and a node with another name may start.
    let key = funded(&first, credits(1)).await;
    let (second, _) = Store::open(&named(database, "two")).unwrap();
    for store in [&first, &second] {
        let admitted = admit(store, &key, credits(1)).await.unwrap();
        store.close(released(admitted.hold));
        store.flush().await.unwrap();
    }
    drop(first);
    Store::open(&named(database, "one")).unwrap();
}

pub(crate) async fn two_nodes_share_wallets_and_limits(database: &TestDatabase) {
    let (one, two) = (database.open(), database.open());
    let version = price(&one).await;
    assert_eq!(price(&two).await, version);
    let account = wallet(&one, "acme", credits(5)).await;
    let limits = KeyLimits {
        concurrency: Some(2),
        rpm: Some(3),
        ..KeyLimits::default()
    };
    let key = key(&two, account.id, limits).await;
    let first = admit(&one, &key, credits(1)).await.unwrap();
    let second = admit(&two, &key, credits(1)).await.unwrap();
    assert_eq!(second.rates.requests.unwrap().remaining, 1);
    // The key allows two calls at a time, regardless of the node.
    assert!(admit(&one, &key, credits(1)).await.is_err());
    assert!(admit(&two, &key, credits(1)).await.is_err());
    one.close(settled(first.hold, version, 700_000));
    one.flush().await.unwrap();
    let (wallet, used) = two.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.frozen, used.usage),
        (credits(1), Micro::new(700_000))
    );
    // The third request of the minute is admitted, the fourth is not.
    let third = admit(&two, &key, credits(1)).await.unwrap();
    two.close(released(third.hold));
    two.close(released(second.hold));
    two.flush().await.unwrap();
    assert!(admit(&one, &key, credits(1)).await.is_err());
    assert_clean(&one).await;
    assert_clean(&two).await;
}

pub(crate) async fn a_newer_schema_is_refused(database: &TestDatabase) {
    drop(database.open());
    database.tamper(
        "INSERT INTO refinery_schema_history SELECT 999, 'later', applied_on, checksum
         FROM refinery_schema_history LIMIT 1",
    );
    for refused in [
        Store::open(&database.settings()).map(drop),
        Store::attach(&database.settings()).map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, OpenError::NewerSchema { found: 999, .. }),
            "{refused}"
        );
    }
}

/// The contents of a database of the last version without chains: a wallet with one entry, and a node that is still
/// running.
const UNCHAINED: &str = "INSERT INTO wallets (id, name, status, balance, entries, created_at)
        VALUES ('wal_0123456789abcdef', 'old', 'active', 9, 1, 0);
    INSERT INTO entries (wallet, seq, kind, at, charge, balance_delta, gift_delta, credit_delta)
        SELECT n, 1, 'top_up', 0, 0, 9, 0, 0 FROM wallets;
    INSERT INTO nodes (name, started_at, lease_until) VALUES ('older', 0, 9000000000000)";

pub(crate) async fn older_nodes_stop_before_entries_are_chained(database: &TestDatabase) {
    database.migrate_to(5).await;
    database.tamper(UNCHAINED);
    // A live node of that version might write entries without chaining them.
    let impatient = Settings {
        lock_wait_max: Duration::ZERO,
        ..database.settings()
    };
    let refused = Store::open(&impatient).unwrap_err();
    assert!(matches!(refused, OpenError::OlderNodes { .. }), "{refused}");
    // The entries that this node wrote are chained once it has ended.
    database.tamper("UPDATE nodes SET closed_at = 1, swept_at = 1");
    let newer = database.open();
    let report = newer.verify().await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.differences);
    assert_eq!(report.heads.len(), 1);

    // The database refuses writes of a node that was only suspended, whether it chains entries or not.
    let entry = database.try_tamper("UPDATE wallets SET entries = entries + 1");
    assert!(entry.unwrap_err().contains("is not chained"));
    let entry = database.try_tamper("UPDATE wallets SET entries = entries + 1, head = 'other'");
    assert!(entry.unwrap_err().contains("every_entry_is_summed"));
}

/// Sends many calls at once, spread over the nodes. Returns the admitted calls, each with its node.
async fn race(nodes: &[Store], key: &KeyRow, calls: usize) -> Vec<(usize, AdmittedCall)> {
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..calls {
        let (node, key) = (n % nodes.len(), key.clone());
        let store = nodes[node].clone();
        asked.spawn(async move { (node, admit(&store, &key, credits(1)).await) });
    }
    let mut admitted = Vec::new();
    while let Some(answer) = asked.join_next().await {
        match answer.unwrap() {
            (node, Ok(call)) => admitted.push((node, call)),
            (_, Err(error)) => assert!(matches!(error, AdmitError::Refused { .. }), "{error:?}"),
        }
    }
    admitted
}

/// W7: three nodes, credit for seven calls, many calls at once.
pub(crate) async fn three_nodes_race_for_seven_credits(database: &TestDatabase) {
    let nodes = [database.open(), database.open(), database.open()];
    let version = price(&nodes[0]).await;
    let key = funded(&nodes[0], credits(7)).await;
    let admitted = race(&nodes, &key, 600).await;
    assert_eq!(admitted.len(), 7);
    for (node, call) in &admitted {
        call.durable.wait().await.unwrap();
        nodes[*node].close(settled(call.hold, version, 1_000_000));
    }
    for node in &nodes {
        node.flush().await.unwrap();
    }
    let (wallet, used) = nodes[1].balance(&key.id).await.unwrap();
    assert_eq!((wallet.balance, wallet.frozen), (Micro::ZERO, Micro::ZERO));
    assert_eq!((used.usage, wallet.credit_used), (credits(7), Micro::ZERO));
    assert_clean(&nodes[2]).await;
}

pub(crate) async fn limits_are_exact_on_three_nodes(database: &TestDatabase) {
    let nodes = [database.open(), database.open(), database.open()];
    let account = wallet(&nodes[0], "acme", credits(1_000)).await;
    for (limits, most) in [
        (
            KeyLimits {
                // One more request becomes available every twelve seconds.
                rpm: Some(5),
                ..KeyLimits::default()
            },
            5,
        ),
        (
            KeyLimits {
                concurrency: Some(4),
                ..KeyLimits::default()
            },
            4,
        ),
        (
            KeyLimits {
                limit: Some(credits(6)),
                ..KeyLimits::default()
            },
            6,
        ),
    ] {
        let key = key(&nodes[0], account.id, limits.clone()).await;
        let admitted = race(&nodes, &key, 90).await;
        assert_eq!(admitted.len(), most, "{limits:?}");
        for (node, call) in admitted {
            nodes[node].close(released(call.hold));
        }
        for node in &nodes {
            node.flush().await.unwrap();
        }
        let (_, left) = nodes[0].balance(&key.id).await.unwrap();
        assert_eq!((left.open_holds, left.frozen), (0, Micro::ZERO));
    }
    assert_clean(&nodes[0]).await;
}

/// R7: a node was silent for longer than its lease. Here another session closes its epoch. The `kill` tests suspend a
/// real node.
pub(crate) async fn a_node_that_lost_its_lease_begins_anew(database: &TestDatabase) {
    let (first, other) = (database.open(), database.open());
    let version = price(&first).await;
    let key = funded(&first, credits(10)).await;
    let open = admit(&first, &key, credits(2)).await.unwrap();
    open.durable.wait().await.unwrap();
    let epoch = open.hold.epoch().get();
    database.tamper(&format!(
        "UPDATE nodes SET closed_at = 1 WHERE epoch = {epoch}"
    ));
    // The closed epoch opens no more holds.
    assert_eq!(
        admit(&first, &key, credits(1)).await.unwrap_err(),
        AdmitError::Unavailable
    );
    // The other node closes the open hold, and the late settlement changes nothing.
    eventually("the sweep", async || {
        other.balance(&key.id).await.unwrap().0.frozen == Micro::ZERO
    })
    .await;
    first.close(settled(open.hold, version, 1_000_000));
    first.flush().await.unwrap();
    assert_eq!(first.stats().late_closes, 1);
    assert_eq!(other.balance(&key.id).await.unwrap().0.balance, credits(10));
    // After a while the first node has a new epoch, and admits calls again.
    let mut next = None;
    eventually("a new epoch", async || {
        next = admit(&first, &key, credits(1)).await.ok();
        next.is_some()
    })
    .await;
    let next = next.unwrap();
    assert!(next.hold.epoch() > open.hold.epoch());
    first.close(released(next.hold));
    first.flush().await.unwrap();
    assert_clean(&other).await;
}
