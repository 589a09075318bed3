//! Tests checkpoints of the log while batches are written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::rig::*;
use crate::{Settings, Store};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_folded_and_does_not_grow_without_bound() {
    let folder = tempfile::tempdir().unwrap();
    let wal_bytes_max = 128 * 1024;
    let (store, _) = Store::open(&Settings {
        wal_bytes_max,
        ..settings(folder.path())
    })
    .unwrap();
    let (key, price) = fund(&store).await;
    let rig = Rig {
        folder,
        store,
        failing_commits: Arc::default(),
        misreported_commits: Arc::default(),
        commits_wait: Arc::default(),
        checkpoint_lock: Arc::default(),
        key,
        price,
    };
    let mut longest = 0;
    let begun = Instant::now();
    // Each call is a batch of its own, about 25 KiB of log. After a checkpoint the log restarts from the
    // beginning.
    loop {
        let stats = rig.store.stats();
        if stats.checkpoints >= 3 && stats.wal_frames < longest / 2 {
            break;
        }
        longest = longest.max(stats.wal_frames);
        assert!(begun.elapsed() < Duration::from_secs(30), "{stats:#?}");
        let call = rig.admit().await.unwrap();
        call.durable.wait().await.unwrap();
        rig.release(&call);
    }
    rig.money().await;
    assert_eq!(
        rig.store.stats().foreign_writes,
        0,
        "folding keeps the row cache"
    );
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_folded_in_an_open_batch_is_begun_anew_by_it() {
    let rig = Rig::with(|settings| settings.gather = Duration::from_secs(60)).await;
    let checkpointer = Connection::open(rig.path()).unwrap();
    let copied = || -> i64 {
        let copy = "PRAGMA wal_checkpoint(PASSIVE)";
        checkpointer.query_row(copy, [], |row| row.get(2)).unwrap()
    };
    for _ in 0..5 {
        let call = rig.admit().await.unwrap();
        call.durable.wait().await.unwrap();
        rig.release(&call);
    }
    rig.money().await;
    // No caller waits for this call, so its batch stays open.
    let call = rig.admit().await.unwrap();
    let long = {
        let mut checkpoints = rig.checkpoint_lock.lock();
        *checkpoints += 1;
        copied()
    };
    call.durable.wait().await.unwrap();
    assert!(copied() < long / 2, "{} of {long}", copied());
    rig.release(&call);
    assert_eq!(rig.money().await, (10_000_000, 0));
    assert_eq!(rig.store.stats().foreign_writes, 0);
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::await_holding_lock,
    reason = "what is waited for does not wait for it"
)]
async fn while_the_log_is_folded_calls_are_decided_and_not_promised() {
    let rig = Rig::new().await;
    let open = rig.admit().await.unwrap();
    open.durable.wait().await.unwrap();
    let folding = rig.checkpoint_lock.lock();
    rig.settle(&open);
    // The calls arrive one after the other, and would otherwise need up to three batches. Here all of them join the
    // batch that waits.
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(rig.admit().await.unwrap());
    }
    assert!(calls.iter().all(|call| !call.durable.is_done()));
    drop(folding);
    for call in &calls {
        call.durable.wait().await.unwrap();
        rig.settle(call);
    }
    assert_eq!(rig.money().await, (9_000_000, 0));
    assert_eq!(rig.store.stats().commits_failed, 0);
    rig.assert_clean().await;
}
