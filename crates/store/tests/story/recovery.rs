//! Tests starting and ending a server, and commands that run at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ledger::Micro;
use store::{AdmitError, OpenError, Store};

use crate::test_database::{
    TestDatabase, actor, admit, assert_clean, credits, funded, price, released, settled,
};

pub(crate) async fn holds_of_an_earlier_start_are_abandoned(database: &TestDatabase) {
    let (store, first) = database.reopen();
    assert_eq!((first.abandoned, first.held), (0, Micro::ZERO));
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    let mut open = Vec::new();
    for hold in 1..=3 {
        open.push(admit(&store, &key, credits(hold)).await.unwrap());
    }
    store.close(settled(open[0].hold, version, 500_000));
    store.flush().await.unwrap();
    drop(store);

    let (store, second) = database.reopen();
    assert!(second.epoch > first.epoch);
    assert_eq!((second.abandoned, second.held), (2, credits(5)));
    let (wallet, back) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.frozen, wallet.balance),
        (Micro::ZERO, Micro::new(9_500_000))
    );
    assert_eq!((back.frozen, back.open_holds), (Micro::ZERO, 0));
    assert_eq!((store.stats().abandoned, store.stats().open_holds), (2, 0));
    // A late settlement finds its hold closed.
    store.close(settled(open[1].hold, version, 1_000_000));
    let (wallet, _) = store.balance(&key.id).await.unwrap();
    assert_eq!(wallet.balance, Micro::new(9_500_000));
    assert_eq!(store.stats().late_closes, 1);
    assert_clean(&store).await;
    // New holds never reuse an old id.
    let next = admit(&store, &key, credits(1)).await.unwrap();
    assert!(next.hold > open[2].hold);
    store.close(released(next.hold));
}

pub(crate) async fn a_charge_seen_in_the_balance_survives(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    let admitted = admit(&store, &key, credits(1)).await.unwrap();
    store.close(settled(admitted.hold, version, 700_000));
    let (seen, _) = store.balance(&key.id).await.unwrap();
    // The store is left as a killed process leaves it: nothing is drained or released.
    std::mem::forget(store.clone());
    let beside = database.attach();
    let found = beside.find_key(&key.id).await.unwrap().unwrap();
    assert_eq!(
        (seen.balance, found.key.usage),
        (Micro::new(9_300_000), Micro::new(700_000))
    );
    assert_clean(&beside).await;
}

pub(crate) async fn what_was_queued_is_written_when_the_store_goes(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    let admitted = admit(&store, &key, credits(1)).await.unwrap();
    store.close(settled(admitted.hold, version, 700_000));
    drop(store);
    let (store, recovery) = database.reopen();
    assert_eq!(recovery.abandoned, 0);
    assert_eq!(
        store.balance(&key.id).await.unwrap().0.balance,
        Micro::new(9_300_000)
    );
}

pub(crate) async fn a_second_server_is_refused(database: &TestDatabase) {
    let store = database.open();
    let refused = Store::open(&database.settings()).unwrap_err();
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused}");
    assert!(refused.to_string().contains("tollgate.db"), "{refused}");
    // The first server continues.
    let key = funded(&store, credits(1)).await;
    let admitted = admit(&store, &key, credits(1)).await.unwrap();
    store.close(released(admitted.hold));
    drop(store);
    database.open();
}

pub(crate) async fn a_command_beside_a_running_server_is_seen_by_it(database: &TestDatabase) {
    let server = database.open();
    let key = funded(&server, credits(1)).await;
    assert!(admit(&server, &key, credits(2)).await.is_err());

    let command = database.attach();
    let row = command
        .top_up(key.wallet, credits(4), "from the command line", &actor())
        .await
        .unwrap();
    assert_eq!(row.wallet.balance, credits(5));
    let admitted = admit(&server, &key, credits(2)).await.unwrap();
    let (wallet, _) = server.balance(&key.id).await.unwrap();
    assert_eq!((wallet.balance, wallet.frozen), (credits(5), credits(2)));

    // The server also sees changes by the command, while one of its holds is open.
    command
        .set_key_enabled(key.id, false, &actor())
        .await
        .unwrap();
    assert!(admit(&server, &key, credits(1)).await.is_err());
    server.close(released(admitted.hold));
    server.flush().await.unwrap();
    assert_clean(&command).await;
    drop(command);
    assert_clean(&server).await;
}

pub(crate) async fn a_command_gets_its_turn_beside_a_busy_server(database: &TestDatabase) {
    let server = database.open();
    let version = price(&server).await;
    let key = funded(&server, credits(100)).await;
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (server, key, stop) = (server.clone(), key.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut calls = 0;
                while !stop.load(Ordering::Relaxed) {
                    let admitted = admit(&server, &key, Micro::new(100)).await.unwrap();
                    server.close(settled(admitted.hold, version, 10));
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    let command = database.attach();
    for _ in 0..10 {
        command
            .top_up(key.wallet, credits(1), "", &actor())
            .await
            .unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let mut calls = 0;
    for caller in callers {
        calls += caller.await.unwrap();
    }
    let (wallet, spent) = server.balance(&key.id).await.unwrap();
    let charged = Micro::new(calls * 10);
    assert_eq!((spent.usage, wallet.frozen), (charged, Micro::ZERO));
    assert_eq!(wallet.balance.checked_add(charged), Some(credits(110)));
    assert_clean(&server).await;
}

pub(crate) async fn a_command_does_not_admit(database: &TestDatabase) {
    // The command attaches to a database that no server has ever used.
    let command = database.attach();
    let key = funded(&command, credits(1)).await;
    assert_eq!(
        admit(&command, &key, credits(1)).await.unwrap_err(),
        AdmitError::Unavailable
    );
    assert!(
        command
            .journal(store::JournalQuery::default())
            .await
            .unwrap()
            .is_empty()
    );
    assert_clean(&command).await;
    drop(command);
    let (server, recovery) = database.reopen();
    assert_eq!(recovery.abandoned, 0);
    assert_eq!(
        server.find_key(&key.id).await.unwrap().unwrap().wallet,
        key.wallet
    );
}
