//! Tests the states of the writer and the locks that it holds in each (the table in `sqlite/writer/mod.rs`).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::rig::*;
use crate::NotDurable;
use crate::backend::Backend;
use crate::sqlite::writer::writer_lock::WriterLock;

const PAGE: &str = include_str!("../writer/mod.rs");

/// The locks that the writer holds, in the words of the table.
type Held = [&'static str; 4];

/// The rows of the table: each state with the locks that the writer holds in it.
fn table() -> Vec<(&'static str, Held)> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("//! | "));
    let cells = rows.map(|row| row.trim_end_matches(" |").split(" | ").collect::<Vec<_>>());
    let mut states = cells.filter_map(|cells| match *cells.as_slice() {
        [state, lock, transaction, checkpoint, books] => {
            let checkpoint = checkpoint.trim_end_matches(" by the checkpointer");
            Some((state, [lock, transaction, checkpoint, books]))
        }
        _ => None,
    });
    states.next();
    states.collect()
}

fn observe(rig: &Rig) -> Held {
    let mut lock = WriterLock::open(&rig.path(), Duration::ZERO).unwrap();
    let lock = lock.acquire().is_err();
    let other = Connection::open(rig.path()).unwrap();
    other.busy_timeout(Duration::ZERO).unwrap();
    let transaction = other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err();
    let checkpoint = rig.checkpoint_lock.try_lock().is_none();
    let Backend::Sqlite(sqlite) = &rig.store.backend else {
        unreachable!("a rig is embedded");
    };
    let shared = sqlite.shared_ledger.is_shared();
    [
        if lock { "held" } else { "free" },
        if transaction { "open" } else { "none" },
        if checkpoint { "held" } else { "free" },
        if shared { "callers" } else { "writer" },
    ]
}

/// Waits until the writer holds the locks of the table's first state, and removes that state from the table.
fn walk(table: &mut Vec<(&'static str, Held)>, rig: &Rig, state: &str) {
    let (next, expected) = table.remove(0);
    assert_eq!(next, state);
    let begun = Instant::now();
    while observe(rig) != expected {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{state}: {:?}",
            observe(rig)
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_holds_what_the_table_of_its_states_says() {
    let mut table = table();
    // A batch stays open until a caller waits for it.
    let rig = Rig::with(|settings| settings.gather = Duration::from_secs(60)).await;
    walk(&mut table, &rig, "asleep");

    let call = rig.admit().await.unwrap();
    walk(&mut table, &rig, "sharing an open batch");

    let checkpoint = rig.checkpoint_lock.lock();
    let durable = call.durable.clone();
    let waiting = tokio::spawn(async move { durable.wait().await });
    walk(&mut table, &rig, "waiting for the checkpointer");

    let stopped = rig.commits_wait.lock();
    drop(checkpoint);
    walk(&mut table, &rig, "writing the last batch before a pause");
    drop(stopped);
    assert_eq!(waiting.await.unwrap(), Ok(()));

    // Four open calls count as load.
    let mut calls = vec![call];
    for _ in 0..4 {
        calls.push(rig.admit().await.unwrap());
    }
    let stopped = rig.commits_wait.lock();
    let durable = calls[4].durable.clone();
    let waiting = tokio::spawn(async move { durable.wait().await });
    walk(
        &mut table,
        &rig,
        "writing a batch while callers decide the next one",
    );

    rig.failing_commits.store(u32::MAX, Ordering::SeqCst);
    drop(stopped);
    assert_eq!(waiting.await.unwrap(), Err(NotDurable));
    walk(&mut table, &rig, "pausing after a failed commit");
    assert!(table.is_empty(), "{table:?}");

    rig.failing_commits.store(0, Ordering::SeqCst);
    rig.until("commits succeed again", |_| rig.store.healthy())
        .await;
    for call in &calls {
        rig.release(call);
    }
    assert_eq!(rig.money().await, (10_000_000, 0));
    rig.assert_clean().await;
}

/// Under load, a batch that a caller waits for stays open for more calls. If the disk is quick, the batch is written as
/// soon as the last of its calls has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_written_when_the_last_of_its_calls_has_ended() {
    let rig = Rig::with(|settings| {
        settings.gather = Duration::from_secs(60);
        settings.quick_sync = Duration::MAX;
    })
    .await;
    // Four open calls count as load, so the next batch stays open.
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(rig.admit().await.unwrap());
    }
    assert_eq!(calls[3].durable.wait().await, Ok(()));

    let (first, last) = (rig.admit().await.unwrap(), rig.admit().await.unwrap());
    let durable = first.durable.clone();
    let waiting = tokio::spawn(async move { durable.wait().await });
    let Backend::Sqlite(sqlite) = &rig.store.backend else {
        unreachable!("a rig is embedded");
    };
    // While the writer has the books, a close is queued, and would wait for the end of the batch.
    rig.until("the books are shared", |_| {
        first.durable.is_awaited() && sqlite.shared_ledger.is_shared()
    })
    .await;
    rig.release(&first);
    // Closing `first` or a call of an earlier batch does not end the batch, because `last` is open.
    rig.release(&calls[0]);
    assert!(last.durable.is_open());
    rig.release(&last);
    let written = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert_eq!(written.unwrap().unwrap(), Ok(()));

    for call in &calls[1..] {
        rig.release(call);
    }
    assert_eq!(rig.money().await, (10_000_000, 0));
    rig.assert_clean().await;
}
