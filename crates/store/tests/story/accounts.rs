//! Tests wallets, keys and prices.

use ledger::{Micro, Rates, Refusal, WalletStatus};
use store::{
    AdmitError, Digest, KeyChange, KeyId, KeyLimits, NewKey, NewWallet, StoreError, WalletId,
};

use crate::test_database::{
    CARD, LONG_AGO, NOW, TestDatabase, actor, admit, assert_clean, credits, funded, key, price,
    settled, wallet,
};

pub(crate) async fn a_new_wallet_begins_with_entries(database: &TestDatabase) {
    let store = database.open();
    let new = NewWallet {
        name: "acme".to_owned(),
        balance: credits(100),
        gift: credits(5),
        credit_limit: credits(50),
    };
    let row = store.create_wallet(new, &actor()).await.unwrap();
    assert!(row.is_active());
    let found = store.wallets().await.unwrap();
    assert_eq!(found.len(), 1);
    let wallet = found[0].wallet;
    assert_eq!(wallet, row.wallet);
    assert_eq!(
        (
            wallet.balance,
            wallet.gift_balance,
            wallet.credit_limit,
            wallet.credit_used,
            wallet.frozen
        ),
        (
            credits(100),
            credits(5),
            credits(50),
            Micro::ZERO,
            Micro::ZERO
        )
    );
    let report = store.verify().await.unwrap();
    assert_eq!((report.wallets, report.entries), (1, 3));
    assert_clean(&store).await;
}

pub(crate) async fn a_wallet_is_found_by_name_and_id(database: &TestDatabase) {
    let store = database.open();
    let row = wallet(&store, "acme", credits(1)).await;
    for name in ["acme".to_owned(), row.id.to_string()] {
        assert_eq!(store.find_wallet(&name).await.unwrap().unwrap().id, row.id);
    }
    for name in [
        "Acme",
        "acm",
        "",
        "%",
        "acme' OR '1' = '1",
        "wal_0000000000000000",
    ] {
        assert!(store.find_wallet(name).await.unwrap().is_none(), "{name}");
    }
}

pub(crate) async fn what_people_set_of_a_wallet_stays_beside_what_calls_change(
    database: &TestDatabase,
) {
    let store = database.open();
    let key = funded(&store, credits(10)).await;
    let admitted = admit(&store, &key, credits(2)).await.unwrap();
    store
        .set_credit_limit(key.wallet, credits(7), &actor())
        .await
        .unwrap();
    store
        .set_wallet_status(key.wallet, WalletStatus::Disabled, &actor())
        .await
        .unwrap();
    store.close(settled(admitted.hold, price(&store).await, 2_000_000));
    store.flush().await.unwrap();
    drop(store);
    // A new store reads the stored values, not cached ones.
    let store = database.open();
    let found = store.wallets().await.unwrap().remove(0).wallet;
    assert_eq!(found.status, WalletStatus::Disabled);
    assert_eq!(
        (found.credit_limit, found.balance, found.frozen),
        (credits(7), credits(8), Micro::ZERO)
    );
    assert_clean(&store).await;
}

pub(crate) async fn a_top_up_repays_credit_first_and_a_gift_never_does(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(1)).await;
    store
        .set_credit_limit(key.wallet, credits(10), &actor())
        .await
        .unwrap();
    let version = price(&store).await;
    let admitted = admit(&store, &key, credits(4)).await.unwrap();
    store.close(settled(admitted.hold, version, 4_000_000));
    let (after, _) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (after.balance, after.credit_used),
        (Micro::ZERO, credits(3))
    );

    let row = store
        .gift(key.wallet, credits(2), "sorry", &actor())
        .await
        .unwrap();
    assert_eq!(
        (row.wallet.gift_balance, row.wallet.credit_used),
        (credits(2), credits(3))
    );
    let row = store
        .top_up(key.wallet, credits(5), "invoice 7", &actor())
        .await
        .unwrap();
    assert_eq!(
        (row.wallet.balance, row.wallet.credit_used),
        (credits(2), Micro::ZERO)
    );
    assert_clean(&store).await;
}

pub(crate) async fn senseless_changes_are_refused_and_change_nothing(database: &TestDatabase) {
    let store = database.open();
    let row = wallet(&store, "acme", credits(1)).await;
    let new = |name: &str, balance| NewWallet {
        name: name.to_owned(),
        balance,
        gift: Micro::ZERO,
        credit_limit: Micro::ZERO,
    };
    assert!(matches!(
        store.create_wallet(new("acme", credits(1)), &actor()).await,
        Err(StoreError::Taken { .. })
    ));
    for name in ["", "   ", "a\nb", "wal_lookalike", &"x".repeat(201)] {
        assert!(
            matches!(
                store.create_wallet(new(name, credits(1)), &actor()).await,
                Err(StoreError::Invalid(_))
            ),
            "{name}"
        );
    }
    assert!(matches!(
        store
            .create_wallet(new("minus", credits(-1)), &actor())
            .await,
        Err(StoreError::Overflow)
    ));
    for amount in [Micro::ZERO, credits(-1)] {
        assert!(matches!(
            store.top_up(row.id, amount, "", &actor()).await,
            Err(StoreError::Invalid(_))
        ));
        assert!(matches!(
            store.gift(row.id, amount, "", &actor()).await,
            Err(StoreError::Invalid(_))
        ));
    }
    assert!(matches!(
        store.top_up(row.id, Micro::MAX, "", &actor()).await,
        Err(StoreError::Overflow)
    ));
    assert!(matches!(
        store.set_credit_limit(row.id, credits(-1), &actor()).await,
        Err(StoreError::Overflow)
    ));
    assert!(matches!(
        store
            .top_up(WalletId::random(), credits(1), "", &actor())
            .await,
        Err(StoreError::NotFound { .. })
    ));
    assert!(matches!(
        store
            .update_key(KeyId::random(), KeyChange::default(), &actor())
            .await,
        Err(StoreError::NotFound { .. })
    ));
    assert!(matches!(
        store.balance(&KeyId::random()).await,
        Err(StoreError::NotFound { .. })
    ));

    let found = store.find_wallet("acme").await.unwrap().unwrap();
    assert_eq!(found.wallet, row.wallet);
    assert_eq!(store.wallets().await.unwrap().len(), 1);
    assert_clean(&store).await;
}

pub(crate) async fn a_key_is_found_by_its_digest_alone(database: &TestDatabase) {
    let store = database.open();
    let wallet = wallet(&store, "acme", credits(1)).await;
    let digest = Digest::of(b"sk-tg-secret");
    let limits = KeyLimits {
        expires_at: Some(NOW),
        ..KeyLimits::default()
    };
    let new = NewKey {
        wallet: wallet.id,
        name: Some("ci".to_owned()),
        digest,
        shown_prefix: "sk-tg-se".to_owned(),
        limits,
        tags: Vec::new(),
    };
    let row = store.create_key(new.clone(), &actor()).await.unwrap();
    assert!(matches!(
        store.create_key(new, &actor()).await,
        Err(StoreError::Taken { .. })
    ));

    let head = store.key_by_digest(&digest).await.unwrap().unwrap();
    assert_eq!(
        (head.key, head.wallet, head.enabled, head.expires_at),
        (row.id, wallet.id, true, Some(NOW))
    );
    assert!(
        store
            .key_by_digest(&Digest::of(b"sk-tg-secres"))
            .await
            .unwrap()
            .is_none()
    );

    store
        .set_key_enabled(row.id, false, &actor())
        .await
        .unwrap();
    assert!(!store.key_by_digest(&digest).await.unwrap().unwrap().enabled);
    let found = store.find_key(&row.id).await.unwrap().unwrap();
    assert_eq!(
        (found.name.as_deref(), found.shown_prefix.as_str()),
        (Some("ci"), "sk-tg-se")
    );
    assert_eq!(store.keys(Some(wallet.id)).await.unwrap().len(), 1);
    assert_eq!(store.keys(None).await.unwrap().len(), 1);
    assert!(
        store
            .keys(Some(WalletId::random()))
            .await
            .unwrap()
            .is_empty()
    );
}

pub(crate) async fn key_changes_act_at_the_next_admission(database: &TestDatabase) {
    let store = database.open();
    let row = wallet(&store, "acme", credits(10)).await;
    let key = key(&store, row.id, KeyLimits::default()).await;
    let refusal =
        |result: Result<_, AdmitError>| result.map(|_: store::AdmittedCall| ()).unwrap_err();
    let no = |refusal| AdmitError::Refused {
        refusal,
        rates: Rates::default(),
    };

    let change = KeyChange {
        limit: Some(Some(credits(1))),
        name: Some(Some("tight".to_owned())),
        ..KeyChange::default()
    };
    let changed = store.update_key(key.id, change, &actor()).await.unwrap();
    assert_eq!(
        (changed.key.limit, changed.name.as_deref()),
        (Some(credits(1)), Some("tight"))
    );
    let refused = refusal(admit(&store, &key, credits(2)).await);
    assert_eq!(refused, no(Refusal::KeyLimitReached));

    let change = KeyChange {
        limit: Some(None),
        expires_at: Some(Some(LONG_AGO)),
        ..KeyChange::default()
    };
    let changed = store.update_key(key.id, change, &actor()).await.unwrap();
    assert_eq!(
        (changed.key.limit, changed.name.as_deref()),
        (None, Some("tight"))
    );
    let refused = refusal(admit(&store, &key, credits(2)).await);
    assert_eq!(refused, no(Refusal::KeyExpired));

    let change = KeyChange {
        expires_at: Some(None),
        ..KeyChange::default()
    };
    store.update_key(key.id, change, &actor()).await.unwrap();
    store
        .set_key_enabled(key.id, false, &actor())
        .await
        .unwrap();
    let refused = refusal(admit(&store, &key, credits(2)).await);
    assert_eq!(refused, no(Refusal::KeyDisabled));

    store.set_key_enabled(key.id, true, &actor()).await.unwrap();
    store
        .set_wallet_status(row.id, WalletStatus::Disabled, &actor())
        .await
        .unwrap();
    let refused = refusal(admit(&store, &key, credits(2)).await);
    assert_eq!(refused, no(Refusal::WalletDisabled));

    store
        .set_wallet_status(row.id, WalletStatus::Active, &actor())
        .await
        .unwrap();
    let admitted = admit(&store, &key, credits(2)).await.unwrap();
    // Admitted calls settle as usual, regardless of later changes to the wallet and key.
    store
        .set_wallet_status(row.id, WalletStatus::Disabled, &actor())
        .await
        .unwrap();
    store
        .set_key_enabled(key.id, false, &actor())
        .await
        .unwrap();
    store.close(settled(admitted.hold, price(&store).await, 500_000));
    let (wallet, key) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.balance, key.usage),
        (Micro::new(9_500_000), Micro::new(500_000))
    );
    assert_clean(&store).await;
}

pub(crate) async fn price_versions_are_interned(database: &TestDatabase) {
    let store = database.open();
    let first = store.price_version("a/model", CARD).await.unwrap();
    assert_eq!(store.price_version("a/model", CARD).await.unwrap(), first);
    let other_model = store.price_version("b/model", CARD).await.unwrap();
    let other_card = store
        .price_version("a/model", r#"{"input":"2"}"#)
        .await
        .unwrap();
    assert!(first != other_model && first != other_card && other_model != other_card);
    drop(store);
    assert_eq!(
        database
            .open()
            .price_version("a/model", CARD)
            .await
            .unwrap(),
        first
    );
}

pub(crate) async fn accounts_are_found_by_a_part_of_their_names(database: &TestDatabase) {
    let store = database.open();
    let (acme, other) = (
        wallet(&store, "Acme Größe", credits(1)).await,
        wallet(&store, "other", credits(1)).await,
    );
    let by = actor();
    let robot = store.create_key(
        NewKey {
            wallet: other.id,
            name: Some("Build robot".to_owned()),
            digest: Digest::of(b"sk-found"),
            shown_prefix: "sk-found".to_owned(),
            limits: KeyLimits::default(),
            tags: Vec::new(),
        },
        &by,
    );
    let robot = robot.await.unwrap();
    let unnamed = key(&store, acme.id, KeyLimits::default()).await;
    let found = async |text: &str| {
        let found = store.find_accounts(text, 10).await.unwrap();
        let wallets: Vec<WalletId> = found.wallets.iter().map(|(id, _)| *id).collect();
        let keys: Vec<KeyId> = found.keys.iter().map(|key| key.id).collect();
        (wallets, keys)
    };
    for (text, wallets, keys) in [
        ("ACME", vec![acme.id], vec![]),
        ("robot", vec![], vec![robot.id]),
        ("o", vec![other.id], vec![robot.id]),
        ("100%", vec![], vec![]),
        ("_", vec![], vec![]),
        ("sk-found-and-the-rest", vec![], vec![robot.id]),
        (&*acme.id.to_string(), vec![acme.id], vec![]),
        (&unnamed.id.to_string()[..12], vec![], vec![unnamed.id]),
    ] {
        assert_eq!(found(text).await, (wallets, keys), "{text}");
    }
    assert_eq!(store.find_accounts("", 1).await.unwrap().wallets.len(), 1);
    let names = store
        .account_names(
            vec![acme.id, WalletId::random()],
            vec![robot.id, unnamed.id],
        )
        .await
        .unwrap();
    assert_eq!(names.wallets, [(acme.id, "Acme Größe".to_owned())].into());
    assert_eq!(names.keys, [(robot.id, "Build robot".to_owned())].into());
}

pub(crate) async fn wallets_beyond_their_credit_line_are_found_by_their_debt(
    database: &TestDatabase,
) {
    let store = database.open();
    for (name, credit) in [("none", 0), ("little", 2), ("much", 2), ("more", 2)] {
        let new = NewWallet {
            name: name.to_owned(),
            balance: Micro::ZERO,
            gift: Micro::ZERO,
            credit_limit: credits(credit),
        };
        store.create_wallet(new, &actor()).await.unwrap();
    }
    assert_eq!(store.wallets_beyond_credit(2).await.unwrap().total, 0);
    drop(store);
    for (name, used) in [
        ("little", 2_000_001),
        ("much", 9_000_000),
        ("more", 5_000_000),
    ] {
        database.tamper(&format!(
            "UPDATE wallets SET credit_used = {used} WHERE name = '{name}'"
        ));
    }
    let found = database.open().wallets_beyond_credit(2).await.unwrap();
    let names: Vec<&str> = found.deepest.iter().map(|row| row.name.as_str()).collect();
    assert_eq!((names, found.total), (vec!["much", "more"], 3));
}
