//! Tests the models, tags and secrets of keys, and searches for keys.

use std::fmt::Write as _;

use ledger::{Micro, UnixMs};
use store::{
    Digest, KeyChange, KeyId, KeyLimits, KeyQuery, KeyRotation, KeyRow, ModelList, NewKey, Store,
    StoreError, WalletId,
};

use crate::test_database::{
    LONG_AGO, NOW, TestDatabase, actor, admit, assert_clean, credits, funded, released, wallet,
};

fn digest(secret: &str) -> Digest {
    Digest::of(secret.as_bytes())
}

pub(crate) fn rotation(secret: &str, old_secret_until: Option<UnixMs>) -> KeyRotation {
    KeyRotation {
        digest: digest(secret),
        shown_prefix: secret.chars().take(6).collect(),
        old_secret_until,
    }
}

pub(crate) async fn key_with(store: &Store, wallet: WalletId, name: &str, tags: &[&str]) -> KeyRow {
    let new = NewKey {
        wallet,
        name: Some(name.to_owned()),
        digest: digest(name),
        shown_prefix: format!("sk-{}", name.chars().take(3).collect::<String>()),
        limits: KeyLimits::default(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
    };
    store.create_key(new, &actor()).await.unwrap()
}

pub(crate) async fn a_key_says_which_models_it_may_call(database: &TestDatabase) {
    let store = database.open();
    let account = wallet(&store, "acme", credits(1)).await;
    let key = key_with(&store, account.id, "one", &[]).await;
    let head = async || store.key_by_digest(&digest("one")).await.unwrap().unwrap();
    assert_eq!(head().await.models, None);
    assert!(head().await.allows("any/model"));
    let models = ModelList::new(["sim/chat", "acme/*"]).unwrap();
    let change = KeyChange {
        models: Some(models.clone()),
        ..KeyChange::default()
    };
    let row = store.update_key(key.id, change, &actor()).await.unwrap();
    assert_eq!(row.models, models);
    let head_now = head().await;
    assert!(head_now.allows("sim/chat") && head_now.allows("acme/big"));
    assert!(!head_now.allows("sim/other"));
    // Another change keeps the list, and an empty list removes it.
    store
        .set_key_enabled(key.id, false, &actor())
        .await
        .unwrap();
    let found = store.find_key(&key.id).await.unwrap().unwrap();
    assert_eq!(found.models, models);
    let change = KeyChange {
        models: Some(ModelList::new::<&str>([]).unwrap()),
        enabled: Some(true),
        ..KeyChange::default()
    };
    let row = store.update_key(key.id, change, &actor()).await.unwrap();
    assert!(row.models.is_none() && row.key.enabled);
    assert_eq!(head().await.models, None);
}

pub(crate) async fn an_old_secret_works_until_its_time(database: &TestDatabase) {
    let store = database.open();
    let account = wallet(&store, "acme", credits(1)).await;
    let key = key_with(&store, account.id, "first", &[]).await;
    let until = UnixMs::new(4_000_000_000_000);
    let head = async |secret| store.key_by_digest(&digest(secret)).await.unwrap();

    let row = store
        .rotate_key(key.id, rotation("second", Some(until)), &actor())
        .await
        .unwrap();
    assert_eq!(
        (row.old_secret_until, &*row.shown_prefix),
        (Some(until), "second")
    );
    let (old, new) = (head("first").await.unwrap(), head("second").await.unwrap());
    assert_eq!((old.key, new.key), (key.id, key.id));
    // The old secret has an end, and the new one has none.
    assert_eq!((old.expires_at, new.expires_at), (Some(until), None));

    // The key's own expiry applies to both secrets.
    let ends_at = until.minus_ms(5);
    let change = KeyChange {
        expires_at: Some(Some(ends_at)),
        ..KeyChange::default()
    };
    store.update_key(key.id, change, &actor()).await.unwrap();
    for secret in ["first", "second"] {
        assert_eq!(head(secret).await.unwrap().expires_at, Some(ends_at));
    }

    // A second rotation ends the secret before the last one. A rotation without an overlap ends all earlier secrets.
    store
        .rotate_key(key.id, rotation("third", Some(until)), &actor())
        .await
        .unwrap();
    assert_eq!(head("first").await, None);
    assert!(head("second").await.is_some() && head("third").await.is_some());
    let row = store
        .rotate_key(key.id, rotation("fourth", None), &actor())
        .await
        .unwrap();
    assert_eq!(row.old_secret_until, None);
    for (secret, works) in [("second", false), ("third", false), ("fourth", true)] {
        assert_eq!(head(secret).await.is_some(), works, "{secret}");
    }

    // A time in the past ends the old secret at once, and is not shown.
    let row = store
        .rotate_key(key.id, rotation("fifth", Some(LONG_AGO)), &actor())
        .await
        .unwrap();
    assert_eq!(row.old_secret_until, None);
    assert_eq!(head("fourth").await.unwrap().expires_at, Some(LONG_AGO));

    // No stored secret, current or old, can be given again, not even to the same key.
    for known in ["fourth", "fifth"] {
        let taken = store
            .rotate_key(key.id, rotation(known, None), &actor())
            .await;
        assert!(matches!(taken, Err(StoreError::Taken { .. })), "{known}");
    }
    let nobody = store
        .rotate_key(KeyId::random(), rotation("sixth", None), &actor())
        .await;
    assert!(matches!(nobody, Err(StoreError::NotFound { .. })));
    assert_clean(&store).await;
}

pub(crate) async fn a_key_remembers_when_it_was_used(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(5)).await;
    let last = async || {
        let row = store.find_key(&key.id).await.unwrap().unwrap();
        row.last_used_at
    };
    assert_eq!(last().await, None);
    assert!(admit(&store, &key, credits(6)).await.is_err());
    store.flush().await.unwrap();
    assert_eq!(last().await, None, "a refusal is no use");
    let call = admit(&store, &key, credits(1)).await.unwrap();
    store.close(released(call.hold));
    store.flush().await.unwrap();
    let at = last().await.unwrap();
    match database {
        TestDatabase::Sqlite(_) => assert_eq!(at, NOW),
        TestDatabase::Postgres(_) => assert!(at > LONG_AGO),
    }
    // The time survives changes and a restart.
    store
        .set_key_enabled(key.id, false, &actor())
        .await
        .unwrap();
    drop(store);
    let row = database.open().find_key(&key.id).await.unwrap().unwrap();
    assert_eq!(row.last_used_at, Some(at));
}

pub(crate) async fn keys_are_found_by_name_tag_and_wallet_a_page_at_a_time(
    database: &TestDatabase,
) {
    let store = database.open();
    let acme = wallet(&store, "acme", credits(1)).await;
    let other = wallet(&store, "50% off", credits(1)).await;
    let mut made = Vec::new();
    for (wallet, name, tags) in [
        (acme.id, "Checkout", &["prod", "team a"][..]),
        (acme.id, "Search", &["prod"]),
        (other.id, "checkout 2", &["team"]),
        (other.id, "10_000", &[]),
    ] {
        made.push(key_with(&store, wallet, name, tags).await);
    }
    let find = async |query| {
        let found = store.search_keys(query).await.unwrap();
        let names = found.into_iter().map(|row| row.name.unwrap());
        names.collect::<Vec<String>>()
    };
    let text = |text: &str| KeyQuery {
        text: Some(text.to_owned()),
        ..KeyQuery::default()
    };
    let tag = |tag: &str| KeyQuery {
        tag: Some(tag.to_owned()),
        ..KeyQuery::default()
    };
    assert_eq!(made[0].wallet_name, "acme");
    let all = ["10_000", "checkout 2", "Search", "Checkout"];
    assert_eq!(find(KeyQuery::default()).await, all);
    for (query, expected) in [
        (text("CHECK"), &["checkout 2", "Checkout"][..]),
        (text("acme"), &["Search", "Checkout"]),
        (text("sk-Sea"), &["Search"]),
        (text(&made[0].id.to_string()), &["Checkout"]),
        (text("50%"), &["10_000", "checkout 2"]),
        (text("0%0"), &[]),
        (text("0_0"), &["10_000"]),
        (text("1_0"), &[]),
        (tag("prod"), &["Search", "Checkout"]),
        (tag("team"), &["checkout 2"]),
        (tag("team a"), &["Checkout"]),
        (tag("pro"), &[]),
        (
            KeyQuery {
                wallet: Some(other.id),
                ..text("check")
            },
            &["checkout 2"],
        ),
    ] {
        assert_eq!(find(query.clone()).await, expected, "{query:?}");
    }
    let mut after = None;
    for name in all {
        let page = KeyQuery {
            after,
            count_max: Some(1),
            ..KeyQuery::default()
        };
        let found = store.search_keys(page).await.unwrap();
        let names: Vec<_> = found.iter().map(|row| row.name.as_deref()).collect();
        assert_eq!(names, [Some(name)]);
        after = Some(found[0].id);
    }
    let beyond = KeyQuery {
        after,
        ..KeyQuery::default()
    };
    assert!(find(beyond).await.is_empty());
    // Tags are replaced as a whole. Invalid tags change nothing.
    let tags = |tags: &[&str]| KeyChange {
        tags: Some(tags.iter().map(|tag| (*tag).to_owned()).collect()),
        ..KeyChange::default()
    };
    let row = store
        .update_key(made[0].id, tags(&["new"]), &actor())
        .await
        .unwrap();
    assert_eq!(row.tags, ["new"]);
    let refused = store
        .update_key(made[0].id, tags(&["a\nb"]), &actor())
        .await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))));
    assert_eq!(find(tag("new")).await, ["Checkout"]);
    let row = store
        .update_key(made[0].id, tags(&[]), &actor())
        .await
        .unwrap();
    assert!(row.tags.is_empty());
}

/// A wallet of 9 micro-credits and its key, in a schema in which keys only had limits.
const OLD_KEY: &str = "INSERT INTO wallets (id, name, status, balance, entries, created_at)
        VALUES ('wal_0123456789abcdef', 'old', 'active', 9, 1, 0);
    INSERT INTO entries (wallet, seq, kind, at, charge, balance_delta, gift_delta, credit_delta)
        SELECT n, 1, 'top_up', 0, 0, 9, 0, 0 FROM wallets;
    INSERT INTO keys (id, wallet, name, digest, shown_prefix, spend_limit, created_at)
        SELECT 'key_0123456789abcdef', n, 'old', DIGEST, 'sk-tg-ol', 5, 0 FROM wallets;";

pub(crate) async fn a_key_of_an_earlier_version_is_as_limited_as_it_was(database: &TestDatabase) {
    database
        .migrate_to(match database {
            TestDatabase::Sqlite(_) => 6,
            TestDatabase::Postgres(_) => 5,
        })
        .await;
    let mut hex = String::new();
    for byte in digest("old").as_bytes() {
        write!(hex, "{byte:02x}").unwrap();
    }
    let written = [format!("x'{hex}'"), format!("'\\x{hex}'::bytea")];
    database.tamper(&OLD_KEY.replace("DIGEST", database.sql_for(&written[0], &written[1])));
    let store = database.open();
    assert_clean(&store).await;
    let head = store.key_by_digest(&digest("old")).await.unwrap().unwrap();
    assert_eq!((head.expires_at, head.models), (None, None));
    let row = row_of(&store, head.key).await;
    assert_eq!(
        (row.name.as_deref(), row.wallet_name.as_str()),
        (Some("old"), "old")
    );
    assert_eq!(row.key.limit, Some(Micro::new(5)));
    assert_eq!(
        (row.key.window, row.calendar, row.models),
        (None, None, None)
    );
    assert_eq!((row.tags.len(), row.old_secret_until), (0, None));
    assert_eq!(row.last_used_at, None);
    let row = row_of(&store, head.key).await;
    assert!(admit(&store, &row, Micro::new(6)).await.is_err());
    let call = admit(&store, &row, Micro::new(5)).await.unwrap();
    store.close(released(call.hold));
    store.flush().await.unwrap();
    assert!(row_of(&store, head.key).await.last_used_at.is_some());
    assert_clean(&store).await;
}

async fn row_of(store: &Store, key: KeyId) -> KeyRow {
    store.find_key(&key).await.unwrap().unwrap()
}
