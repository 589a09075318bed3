//! Tests stored catalogs and their audit rows.

use store::{AuditAction, AuditQuery, Store};

use crate::test_database::{TestDatabase, actor};

fn action(target: &str) -> AuditAction {
    AuditAction {
        action: "config.replace",
        target: target.to_owned(),
        before: None,
        after: Some("{}".to_owned()),
    }
}

pub(crate) async fn replace(store: &Store, expected: i64, document: &str) -> Option<i64> {
    let by = actor();
    let replaced = store.replace_catalog(expected, document.to_owned(), action("config"), &by);
    replaced.await.unwrap()
}

async fn audited(store: &Store) -> usize {
    let query = AuditQuery {
        action: Some("config.replace".to_owned()),
        limit: 100,
        ..AuditQuery::default()
    };
    store.audit(query).await.unwrap().len()
}

pub(crate) async fn each_catalog_follows_the_last_and_is_audited(database: &TestDatabase) {
    let store = database.open();
    assert_eq!(store.latest_catalog().await.unwrap(), None);
    assert_eq!(store.catalog_version().await.unwrap(), 0);
    assert_eq!(replace(&store, 0, "one").await, Some(1));
    // A catalog cannot replace an older version or one that does not exist yet.
    for expected in [0, 2, -1] {
        assert_eq!(replace(&store, expected, "other").await, None, "{expected}");
    }
    assert_eq!(replace(&store, 1, "two").await, Some(2));
    let latest = store.latest_catalog().await.unwrap().unwrap();
    assert_eq!((latest.version, &*latest.document), (2, "two"));
    assert_eq!(store.catalog_version().await.unwrap(), 2);
    assert_eq!(audited(&store).await, 2);
    store
        .note_action(action("channel"), &actor())
        .await
        .unwrap();
    assert_eq!(audited(&store).await, 3);
}

pub(crate) async fn of_two_that_follow_the_same_one_is_stored(database: &TestDatabase) {
    let stores = [database.open(), database.attach()];
    for round in 0..10 {
        let both = stores.each_ref().map(|store| replace(store, round, "x"));
        let [one, two] = both;
        let (one, two) = tokio::join!(one, two);
        assert_eq!(one.or(two), Some(round + 1));
        assert!(one.is_none() || two.is_none());
    }
    assert_eq!(audited(&stores[0]).await, 10);
}
