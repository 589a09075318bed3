//! Tests searches and lookups that run at the same time.

use std::time::Duration;

use ledger::Micro;
use store::{AuditQuery, Digest, Settings, Store, StoreError, TaskQuery};

use crate::test_database::{TestDatabase, wallet};

/// More slow searches than either database has connections for searches.
const SLOW: usize = 6;

/// Calls wait for lookups, so a search that takes too long is ended.
pub(crate) async fn a_slow_search_is_ended_and_delays_no_lookup(database: &TestDatabase) {
    drop(database.open());
    database.tamper(database.sql_for(
        "ALTER TABLE audit RENAME TO audit_rows;
         CREATE VIEW audit AS WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more)
         SELECT n, 0 AS at, '' AS actor, '' AS actor_name, NULL AS role, '' AS action, '' AS target, NULL AS before,
         NULL AS after, NULL AS request_id FROM more",
        "ALTER TABLE audit RENAME TO audit_rows;
         CREATE VIEW audit AS SELECT r.* FROM pg_sleep(60) LEFT JOIN audit_rows r ON TRUE",
    ));
    let settings = Settings {
        search_max: Duration::from_secs(1),
        ..database.settings()
    };
    let (store, _) = Store::open(&settings).unwrap();
    delay_no_lookup(&store, || store.audit(AuditQuery::default())).await;
}

/// Callers list their own tasks. A caller with many tasks must not delay the key lookups of all others.
pub(crate) async fn a_slow_list_of_a_wallets_tasks_delays_no_lookup(database: &TestDatabase) {
    let settings = Settings {
        search_max: Duration::from_secs(1),
        ..database.settings()
    };
    let (store, _) = Store::open(&settings).unwrap();
    let owner = wallet(&store, "acme", Micro::ZERO).await;
    // The limits and offsets keep the databases from recognizing that there is nothing to find.
    database.tamper(database.sql_for(
        "ALTER TABLE tasks RENAME TO task_rows;
         CREATE VIEW tasks AS WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more)
         SELECT t.* FROM more LEFT JOIN task_rows t ON TRUE WHERE more.n < 0 LIMIT -1 OFFSET 0",
        "ALTER TABLE tasks RENAME TO task_rows;
         CREATE VIEW tasks AS SELECT r.* FROM pg_sleep(60) LEFT JOIN task_rows r ON TRUE OFFSET 0",
    ));
    let of_wallet = TaskQuery {
        wallet: Some(owner.id),
        ..TaskQuery::default()
    };
    delay_no_lookup(&store, || store.tasks(of_wallet.clone())).await;
}

/// Runs searches that would never finish. Checks that the time limit ends them and that keys can be looked up
/// meanwhile.
async fn delay_no_lookup<T, F>(store: &Store, search: impl Fn() -> F)
where
    T: std::fmt::Debug,
    F: Future<Output = Result<T, StoreError>>,
{
    let searches = futures_util::future::join_all((0..SLOW).map(|_| search()));
    tokio::pin!(searches);
    let nobody = Digest::of(b"nobody");
    for _ in 0..20 {
        tokio::select! {
            biased;
            ended = &mut searches => panic!("the lookups waited for searches: {ended:?}"),
            found = store.key_by_digest(&nobody) => assert!(found.unwrap().is_none()),
        }
    }
    for ended in searches.await {
        let ended = ended.unwrap_err();
        assert!(matches!(ended, StoreError::TooSlow { .. }), "{ended}");
    }
    // The connections can be used again.
    assert!(store.wallets().await.is_ok());
}
