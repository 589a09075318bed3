//! Tests manual entries: references, refunds, and the amounts that may be taken.

use ledger::{ManualKind, Micro, WalletStatus};
use store::{
    BookedEntry, EntryKind, EntryQuery, EntryRow, NewEntry, Store, StoreError, WalletId,
    WalletSettings,
};

use crate::faults::Rig;
use crate::faulty_proxy::Mode;
use crate::nodes::named;
use crate::test_database::{
    TestDatabase, actor, admit, assert_clean, credits, funded, released, wallet,
};

fn entry(kind: ManualKind, amount: Micro, reference: &str) -> NewEntry {
    NewEntry {
        kind,
        amount,
        reference: (!reference.is_empty()).then(|| reference.to_owned()),
        refund_of: None,
        note: "because".to_owned(),
    }
}

async fn book(store: &Store, wallet: WalletId, new: NewEntry) -> Result<BookedEntry, StoreError> {
    store.book_entry(wallet, new, &actor()).await
}

async fn entries(store: &Store, wallet: WalletId) -> Vec<EntryRow> {
    let query = EntryQuery {
        wallet: Some(wallet),
        ..EntryQuery::default()
    };
    store.entries(query).await.unwrap()
}

pub(crate) async fn each_kind_says_who_made_it_and_why(database: &TestDatabase) {
    let store = database.open();
    let id = wallet(&store, "acme", Micro::ZERO).await.id;
    for (kind, amount, total) in [
        (ManualKind::TopUp, 10, 10),
        (ManualKind::Gift, 3, 13),
        (ManualKind::Debit, 4, 9),
        (ManualKind::Refund, 1, 8),
        (ManualKind::Adjustment, -2, 6),
        (ManualKind::Adjustment, 5, 11),
    ] {
        let reference = format!("{kind} {amount}");
        let booked = book(&store, id, entry(kind, credits(amount), &reference))
            .await
            .unwrap();
        assert!(booked.is_new);
        let found = store.find_entry(id, booked.seq).await.unwrap().unwrap();
        assert_eq!(found.entry.kind, EntryKind::from(kind));
        assert_eq!(found.entry.reference.as_deref(), Some(&*reference));
        assert_eq!(found.entry.note.as_deref(), Some("because"));
        assert_eq!(found.entry.actor.as_deref(), Some(&*actor().name));
        assert_eq!(found.after.total(), credits(total), "{reference}");
    }
    let row = store.find_wallet("acme").await.unwrap().unwrap();
    assert_eq!(
        (row.wallet.balance, row.wallet.gift_balance),
        (credits(8), credits(3))
    );
    assert_clean(&store).await;
}

pub(crate) async fn a_reference_books_once(database: &TestDatabase) {
    let store = database.open();
    let (id, other) = (
        wallet(&store, "acme", credits(5)).await.id,
        wallet(&store, "other", credits(5)).await.id,
    );
    let new = entry(ManualKind::TopUp, credits(2), "pay_1");
    let first = book(&store, id, new.clone()).await.unwrap();
    let again = NewEntry {
        note: "said differently".to_owned(),
        ..new.clone()
    };
    let again = book(&store, id, again).await.unwrap();
    assert_eq!(
        (first.is_new, again.is_new, first.seq),
        (true, false, again.seq)
    );
    assert_eq!(again.wallet.wallet.balance, credits(7));
    for different in [
        entry(ManualKind::TopUp, credits(3), "pay_1"),
        entry(ManualKind::Gift, credits(2), "pay_1"),
        entry(ManualKind::Debit, credits(2), "pay_1"),
    ] {
        let refused = book(&store, id, different).await.unwrap_err();
        assert!(
            matches!(&refused, StoreError::ReferenceConflict { reference, seq }
                if reference == "pay_1" && *seq == first.seq),
            "{refused}"
        );
    }
    // Another wallet may use the same references, and entries without a reference are not compared.
    assert!(book(&store, other, new).await.unwrap().is_new);
    for _ in 0..2 {
        let new = entry(ManualKind::TopUp, credits(2), "");
        assert!(book(&store, id, new).await.unwrap().is_new);
    }
    // The result is the same after a restart.
    drop(store);
    let store = database.open();
    let new = entry(ManualKind::TopUp, credits(2), "pay_1");
    assert!(!book(&store, id, new).await.unwrap().is_new);
    assert_eq!(entries(&store, id).await.len(), 4);
    assert_clean(&store).await;
}

/// Sends many requests with few references at once. Each reference is booked once.
async fn race(nodes: &[Store], id: WalletId) {
    let before = entries(&nodes[0], id).await.len();
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..200_usize {
        let store = nodes[n % nodes.len()].clone();
        let new = match n % 8 {
            // A retry with a different amount.
            7 => entry(ManualKind::TopUp, credits(2), "pay_1"),
            n => entry(
                ManualKind::TopUp,
                credits(1),
                if n < 4 { "pay_1" } else { "pay_2" },
            ),
        };
        asked.spawn(async move { (n, book(&store, id, new).await) });
    }
    let (mut new, mut known, mut conflicts) = (0, 0, 0);
    let mut winner = None;
    while let Some(done) = asked.join_next().await {
        let (n, booked) = done.unwrap();
        match booked {
            Ok(booked) if booked.is_new => {
                new += 1;
                if n % 8 < 4 || n % 8 == 7 {
                    winner = Some(n % 8 == 7);
                }
            }
            Ok(_) => known += 1,
            Err(StoreError::ReferenceConflict { .. }) => conflicts += 1,
            Err(error) => panic!("{error}"),
        }
    }
    // The amount that came first is booked, and the other one is a conflict.
    let different = if winner == Some(true) { 100 } else { 25 };
    assert_eq!((new, known, conflicts), (2, 200 - 2 - different, different));
    assert_eq!(entries(&nodes[0], id).await.len(), before + 2);
    assert_clean(&nodes[0]).await;
}

pub(crate) async fn two_hundred_retries_book_one_entry(database: &TestDatabase) {
    let store = database.open();
    let id = wallet(&store, "acme", Micro::ZERO).await.id;
    // A command that runs at the same time has a writer of its own.
    race(&[store, database.attach()], id).await;
}

pub(crate) async fn two_hundred_retries_on_three_nodes_book_one_entry(database: &TestDatabase) {
    let nodes = ["one", "two", "three"].map(|name| Store::open(&named(database, name)).unwrap().0);
    let id = wallet(&nodes[0], "acme", Micro::ZERO).await.id;
    race(&nodes, id).await;
}

pub(crate) async fn refunds_never_exceed_their_top_up(database: &TestDatabase) {
    let store = database.open();
    let id = wallet(&store, "acme", credits(100)).await.id;
    let paid = book(&store, id, entry(ManualKind::TopUp, credits(10), "pay_1"))
        .await
        .unwrap();
    let refund = |amount, reference: &str, of: &str| NewEntry {
        refund_of: Some(of.to_owned()),
        ..entry(ManualKind::Refund, credits(amount), reference)
    };
    // Concurrent refunds, by reference and by number: two of 4 credits fit, a third does not.
    let number = paid.seq.to_string();
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..6 {
        let of = if n % 2 == 0 { "pay_1" } else { &*number };
        let (store, new) = (store.clone(), refund(4, &format!("back_{n}"), of));
        asked.spawn(async move { book(&store, id, new).await });
    }
    let booked = asked.join_all().await;
    assert_eq!(booked.iter().filter(|booked| booked.is_ok()).count(), 2);
    for refused in booked.iter().filter_map(|booked| booked.as_ref().err()) {
        assert!(
            matches!(refused, StoreError::NotCovered { .. }),
            "{refused}"
        );
    }
    let over = book(&store, id, refund(3, "more", "pay_1"))
        .await
        .unwrap_err();
    assert!(matches!(over, StoreError::NotCovered { amount_max } if amount_max == credits(2)));
    let last = book(&store, id, refund(2, "rest", &number)).await.unwrap();
    let found = store.find_entry(id, last.seq).await.unwrap().unwrap();
    assert_eq!(found.entry.refund_of, Some(paid.seq));
    assert!(
        !book(&store, id, refund(2, "rest", "pay_1"))
            .await
            .unwrap()
            .is_new
    );
    // A refund must name a top-up of this wallet.
    for of in ["rest", "pay_9", "99", ""] {
        let refused = book(&store, id, refund(1, "x", of)).await.unwrap_err();
        assert!(
            matches!(refused, StoreError::NotFound { what: "top-up", .. }),
            "{of}: {refused}"
        );
    }
    let row = store.find_wallet("acme").await.unwrap().unwrap();
    assert_eq!(row.wallet.balance, credits(100));
    assert_clean(&store).await;
}

pub(crate) async fn what_a_call_holds_is_not_taken(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(10)).await;
    let call = admit(&store, &key, credits(7)).await.unwrap();
    call.durable.wait().await.unwrap();
    let take = |kind, amount| entry(kind, credits(amount), "");
    for (kind, amount) in [
        (ManualKind::Debit, 4),
        (ManualKind::Refund, 4),
        (ManualKind::Adjustment, -4),
    ] {
        let refused = book(&store, key.wallet, take(kind, amount))
            .await
            .unwrap_err();
        assert!(
            matches!(refused, StoreError::NotCovered { amount_max } if amount_max == credits(3)),
            "{kind}"
        );
    }
    let before = entries(&store, key.wallet).await.len();
    let taken = book(&store, key.wallet, take(ManualKind::Debit, 3))
        .await
        .unwrap();
    assert_eq!(taken.wallet.wallet.balance, credits(7));
    store.close(released(call.hold));
    store.flush().await.unwrap();
    assert_eq!(entries(&store, key.wallet).await.len(), before + 2);
    // Only an adjustment uses the credit line.
    store
        .set_credit_limit(key.wallet, credits(5), &actor())
        .await
        .unwrap();
    assert!(
        book(&store, key.wallet, take(ManualKind::Debit, 8))
            .await
            .is_err()
    );
    let adjusted = book(&store, key.wallet, take(ManualKind::Adjustment, -9))
        .await
        .unwrap();
    assert_eq!(adjusted.wallet.wallet.credit_used, credits(2));
    for senseless in [
        entry(ManualKind::Debit, Micro::ZERO, ""),
        entry(ManualKind::TopUp, credits(-1), ""),
        entry(ManualKind::Adjustment, Micro::ZERO, ""),
        entry(ManualKind::TopUp, credits(1), "\n"),
    ] {
        let refused = book(&store, key.wallet, senseless).await.unwrap_err();
        assert!(matches!(refused, StoreError::Invalid(_)), "{refused}");
    }
    assert_clean(&store).await;
}

pub(crate) async fn what_people_set_of_a_wallet_is_set_as_a_whole(database: &TestDatabase) {
    let store = database.open();
    let id = wallet(&store, "acme", credits(1)).await.id;
    wallet(&store, "other", credits(1)).await;
    let settings = |name: &str| WalletSettings {
        name: Some(name.to_owned()),
        credit_limit: Some(credits(9)),
        status: Some(WalletStatus::Disabled),
        alert_below: Some(Some(credits(2))),
    };
    for (name, is_taken) in [("other", true), ("wal_x", false), ("", false)] {
        let refused = store
            .update_wallet(id, settings(name), &actor())
            .await
            .unwrap_err();
        assert_eq!(
            matches!(refused, StoreError::Taken { .. }),
            is_taken,
            "{refused}"
        );
        let row = store.find_wallet("acme").await.unwrap().unwrap();
        assert_eq!(
            (row.wallet.credit_limit, row.is_active()),
            (Micro::ZERO, true)
        );
    }
    let row = store
        .update_wallet(id, settings("new name"), &actor())
        .await
        .unwrap();
    let found = store.find_wallet("new name").await.unwrap().unwrap();
    for row in [row, found] {
        assert_eq!((row.id, row.wallet.credit_limit), (id, credits(9)));
        assert!(!row.is_active());
    }
    // A wallet may keep its own name, and other wallets may take its old one.
    let same = WalletSettings {
        name: Some("new name".to_owned()),
        ..WalletSettings::default()
    };
    store.update_wallet(id, same, &actor()).await.unwrap();
    wallet(&store, "acme", credits(1)).await;
    assert_clean(&store).await;
}

/// The connection is lost before or after the commit. The caller repeats its request until it is answered.
pub(crate) async fn a_payment_is_booked_once_whatever_becomes_of_its_answer(
    database: &TestDatabase,
) {
    let rig = Rig::new(database).await;
    let id = rig.key.wallet;
    let before = entries(&rig.store, id).await.len();
    for (n, fault) in [
        Mode::LoseAnswerTo(b"COMMIT"),
        Mode::CutBefore(b"COMMIT"),
        Mode::CutBefore(b"BEGIN"),
    ]
    .into_iter()
    .enumerate()
    {
        let new = entry(ManualKind::TopUp, credits(1), &format!("pay_{n}"));
        rig.proxy.set(fault);
        let mut booked = book(&rig.store, id, new.clone()).await;
        rig.proxy.set(Mode::Pass);
        while booked.is_err() {
            rig.recovers().await;
            booked = book(&rig.store, id, new.clone()).await;
        }
        assert!(
            !book(&rig.store, id, new).await.unwrap().is_new,
            "{fault:?}"
        );
        let references = entries(&rig.store, id).await;
        let paid = references
            .iter()
            .filter(|it| it.reference.is_some())
            .count();
        assert_eq!(paid, n + 1, "{fault:?}");
    }
    assert!(entries(&rig.store, id).await.len() >= before + 3);
    assert_clean(&rig.store).await;
}
