//! Tests a database whose lock is held by another process.

use std::time::Duration;

use rusqlite::Connection;

use super::rig::*;
use crate::{AdmitError, Digest};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_another_holds_the_lock_calls_are_busy_and_closes_wait() {
    let rig = Rig::with(|settings| settings.queue_wait_max = Duration::from_millis(60)).await;
    let open = rig.admit().await.unwrap();
    open.durable.wait().await.unwrap();
    let other = Connection::open(rig.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    rig.settle(&open);
    assert_eq!(rig.admit().await.unwrap_err(), AdmitError::Busy);
    assert!(
        rig.store
            .key_by_digest(&Digest::of(b""))
            .await
            .unwrap()
            .is_none(),
        "reads go on"
    );
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(rig.money().await, (9_750_000, 0));
    assert_eq!(rig.store.stats().commits_failed, 0);
    rig.assert_clean().await;
}
