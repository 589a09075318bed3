//! Tests accounts that are imported from another gateway.

use ledger::{Micro, WalletStatus};
use store::{
    AuditQuery, Digest, ImportBatch, ImportQuery, ImportedKey, ImportedWallet, KeyId, KeyLimits,
    NewKey, StoreError, WalletId,
};

use crate::test_database::{NOW, TestDatabase, actor, admit, assert_clean, credits, wallet};

fn imported_wallet(number: u32, balance: Micro) -> ImportedWallet {
    let reference = format!("import:x:users:{number}");
    ImportedWallet {
        id: WalletId::derived(&reference),
        name: format!("user {number}"),
        status: WalletStatus::Active,
        balance,
        credit_limit: Micro::ZERO,
        reference,
        note: "imported".to_owned(),
    }
}

fn imported_key(number: u32, wallet: &ImportedWallet) -> ImportedKey {
    let secret = |form: &str| Digest::of(format!("{form}{number}").as_bytes());
    ImportedKey {
        id: KeyId::derived(&format!("import:x:tokens:{number}")),
        new: NewKey {
            wallet: wallet.id,
            name: Some(format!("key {number}")),
            digest: secret("sk-"),
            shown_prefix: "sk-x".to_owned(),
            limits: KeyLimits {
                limit: Some(credits(1)),
                ..KeyLimits::default()
            },
            tags: Vec::new(),
        },
        is_enabled: true,
        second_secret: Some((secret(""), NOW)),
    }
}

pub(crate) async fn a_batch_of_accounts_is_created_as_a_whole(database: &TestDatabase) {
    let store = database.open();
    let rich = imported_wallet(1, credits(5));
    let poor = ImportedWallet {
        credit_limit: credits(2),
        ..imported_wallet(2, credits(-3))
    };
    let off = ImportedWallet {
        status: WalletStatus::Disabled,
        ..imported_wallet(3, Micro::ZERO)
    };
    let mut disabled = imported_key(2, &poor);
    disabled.is_enabled = false;
    let batch = ImportBatch {
        keys: vec![imported_key(1, &rich), disabled.clone()],
        wallets: vec![rich.clone(), poor.clone(), off.clone()],
    };
    store.import(batch, &actor()).await.unwrap();

    let found = |wallet: &ImportedWallet| {
        let (store, id) = (store.clone(), wallet.id.to_string());
        async move { store.find_wallet(&id).await.unwrap().unwrap() }
    };
    assert_eq!(found(&rich).await.wallet.balance, credits(5));
    let owing = found(&poor).await.wallet;
    assert_eq!(
        (owing.credit_used, owing.credit_limit),
        (credits(3), credits(2))
    );
    assert!(!found(&off).await.is_active());
    for (secret, is_known) in [("sk-1", true), ("1", true), ("sk-2", true), ("3", false)] {
        let head = store
            .key_by_digest(&Digest::of(secret.as_bytes()))
            .await
            .unwrap();
        assert_eq!(head.is_some(), is_known, "{secret}");
    }
    let row = store.find_key(&disabled.id).await.unwrap().unwrap();
    assert!(!row.key.enabled);
    assert_eq!(row.key.limit, Some(credits(1)));
    // Every wallet and key has its audit row.
    let audit = store.audit(AuditQuery::default()).await.unwrap();
    let count = |action: &str| audit.iter().filter(|row| row.action == action).count();
    assert_eq!((count("wallet.create"), count("key.create")), (3, 2));

    // The imported key pays from its wallet like any other key.
    let key = store
        .find_key(&imported_key(1, &rich).id)
        .await
        .unwrap()
        .unwrap();
    drop(admit(&store, &key, credits(1)).await.unwrap());
    drop(store);
    let store = database.open();
    assert_clean(&store).await;
}

pub(crate) async fn a_batch_with_one_fault_creates_nothing(database: &TestDatabase) {
    let store = database.open();
    wallet(&store, "taken", credits(1)).await;
    let good = imported_wallet(1, credits(5));
    let named = ImportedWallet {
        name: "taken".to_owned(),
        ..imported_wallet(2, credits(1))
    };
    let first = ImportBatch {
        wallets: vec![good.clone()],
        keys: vec![imported_key(1, &good)],
    };
    let stranger = imported_wallet(9, Micro::ZERO);
    for (wallets, keys, word) in [
        (vec![imported_wallet(3, credits(1)), named], vec![], "taken"),
        (
            vec![imported_wallet(3, credits(1))],
            vec![imported_key(3, &stranger)],
            "no such wallet",
        ),
        (
            vec![imported_wallet(3, Micro::new(i64::MIN))],
            vec![],
            "range",
        ),
    ] {
        let batch = ImportBatch { wallets, keys };
        let refused = store.import(batch, &actor()).await.unwrap_err();
        assert!(refused.to_string().contains(word), "{refused}");
        assert_eq!(store.wallets().await.unwrap().len(), 1, "{word}");
    }
    store.import(first.clone(), &actor()).await.unwrap();
    // A secret belongs to only one key.
    let again = ImportBatch {
        wallets: vec![],
        keys: vec![ImportedKey {
            id: KeyId::random(),
            second_secret: None,
            ..imported_key(1, &good)
        }],
    };
    let refused = store.import(again, &actor()).await.unwrap_err();
    assert!(
        matches!(refused, StoreError::Taken { what: "key", .. }),
        "{refused}"
    );
    assert_eq!(store.keys(None).await.unwrap().len(), 1);
    assert_clean(&store).await;
}

pub(crate) async fn what_was_imported_is_known_again(database: &TestDatabase) {
    let store = database.open();
    let (one, none) = (
        imported_wallet(1, credits(5)),
        imported_wallet(2, Micro::ZERO),
    );
    let key = imported_key(1, &one);
    let batch = ImportBatch {
        wallets: vec![one.clone(), none.clone()],
        keys: vec![key.clone()],
    };
    store.import(batch, &actor()).await.unwrap();
    let other = imported_wallet(3, credits(1));
    let query = ImportQuery {
        wallets: [&one, &none, &other]
            .map(|it| (it.id, it.reference.clone()))
            .to_vec(),
        names: vec!["user 1".to_owned(), "nobody".to_owned()],
        keys: vec![key.id, KeyId::random()],
        digests: vec![Digest::of(b"sk-1"), Digest::of(b"1"), Digest::of(b"x")],
    };
    let known = store.import_known(query).await.unwrap();
    assert_eq!(known.wallets.len(), 2);
    assert_eq!(known.wallets[&one.id], Some(credits(5)));
    assert_eq!(known.wallets[&none.id], None);
    assert_eq!(known.names.get("user 1"), Some(&one.id));
    assert_eq!(known.names.len(), 1);
    assert!(known.keys.contains(&key.id) && known.keys.len() == 1);
    assert_eq!(known.digests.len(), 2);
    assert!(known.digests.values().all(|id| *id == key.id));
    let nothing = store.import_known(ImportQuery::default()).await.unwrap();
    assert!(nothing.wallets.is_empty() && nothing.keys.is_empty());
}
