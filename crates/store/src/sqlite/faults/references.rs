//! Tests payments that are repeated after a commit that failed or was reported as failed.

use std::sync::atomic::Ordering;

use ledger::ManualKind;

use super::rig::*;
use crate::{Actor, BookedEntry, EntryQuery, NewEntry, StoreError};

async fn pay(rig: &Rig) -> Result<BookedEntry, StoreError> {
    let new = NewEntry {
        kind: ManualKind::TopUp,
        amount: CREDIT,
        reference: Some("pay_1".to_owned()),
        refund_of: None,
        note: String::new(),
    };
    let actor = Actor::cli("test");
    rig.store.book_entry(rig.key.wallet, new, &actor).await
}

async fn paid(rig: &Rig) -> usize {
    let entries = rig.store.entries(EntryQuery::default()).await.unwrap();
    let paid = |entry: &&crate::EntryRow| entry.reference.as_deref() == Some("pay_1");
    entries.iter().filter(paid).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_whose_commit_failed_is_booked_by_its_retry() {
    let rig = Rig::new().await;
    rig.failing_commits.store(1, Ordering::SeqCst);
    pay(&rig).await.unwrap_err();
    assert_eq!(paid(&rig).await, 0);
    let booked = loop {
        // Nothing is accepted until a commit succeeds.
        if let Ok(booked) = pay(&rig).await {
            break booked;
        }
    };
    assert!(booked.is_new);
    assert!(!pay(&rig).await.unwrap().is_new);
    assert_eq!(paid(&rig).await, 1);
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_seemed_to_fail_is_found_by_its_retry() {
    let rig = Rig::new().await;
    rig.misreported_commits.store(1, Ordering::SeqCst);
    // There is one entry, regardless of the answer to the first request.
    let first = pay(&rig).await;
    let retried = loop {
        if let Ok(booked) = pay(&rig).await {
            break booked;
        }
    };
    assert!(!retried.is_new, "{first:?}");
    assert_eq!(paid(&rig).await, 1);
    rig.assert_clean().await;
}
