//! Tests a server that is killed while it migrates an old database. The next start must complete the migration.

use std::path::Path;
use std::process::Stdio;

use ledger::Micro;
use refinery_core::{Runner, Target, load_sql_migrations};
use rusqlite::Connection;
use store::{KeyId, Store, WalletId};

use crate::trace::Trace;
use crate::{ANSWERS, Scene, assert_clean};

const OLD: i32 = 1;
const BALANCE: i64 = 5_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_in_its_migration_completes_it_at_the_next_start() {
    if !Trace::is_possible() {
        eprintln!("not played: strace is missing, or may not watch here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut versions = Vec::new();
    for write in [
        1, 2, 3, 4, 6, 9, 13, 18, 24, 31, 39, 48, 58, 69, 81, 94, 110, 130, 155, 185,
    ] {
        let scene = Scene {
            folder: folder.path().join(format!("killed-at-write-{write}")),
            server: None,
            node: None,
        };
        std::fs::create_dir(&scene.folder).unwrap();
        let database = scene.folder.join("tollgate.db");
        make_old(&database);
        let mut victim = Trace::killing_at("pwrite64", write);
        victim.arg(std::env::current_exe().unwrap());
        scene.play_victim(&mut victim);
        let status = victim.env(ANSWERS, "1").stdout(Stdio::null()).status();
        assert!(!status.unwrap().success() || write > 50, "not killed");
        versions.push(version(&database));

        let (store, _) = Store::open(&scene.settings()).unwrap();
        assert_clean(&store).await;
        let key = store.keys(None).await.unwrap().remove(0);
        assert_eq!((key.calendar, key.models), (None, None));
        let (wallet, spent) = store.balance(&key.id).await.unwrap();
        let all = wallet.balance.checked_add(spent.usage).unwrap();
        assert_eq!(all, Micro::new(BALANCE), "killed at write {write}");
    }
    versions.dedup();
    let (before, after) = (OLD, *versions.last().unwrap());
    assert!(after > before, "the last ones were killed behind it");
    assert_eq!(versions, [before, after], "all of it or nothing");
}

/// Creates a database of the first version, with some money in it.
fn make_old(path: &Path) {
    let mut on = Connection::open(path).unwrap();
    on.pragma_update(None, "application_id", 0x546f_6c6c)
        .unwrap();
    on.pragma_update(None, "journal_mode", "WAL").unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/ledger");
    let migrations = load_sql_migrations(folder).unwrap();
    let old = Runner::new(&migrations).set_target(Target::Version(OLD));
    old.run(&mut on).unwrap();
    on.execute(
        "INSERT INTO wallets (n, id, name, status, balance, entries, created_at)
         VALUES (1, ?1, 'acme', 'active', ?2, 1, 0)",
        (WalletId::random().to_string(), BALANCE),
    )
    .unwrap();
    on.execute(
        "INSERT INTO entries (wallet, seq, kind, at, charge, balance_delta, gift_delta, credit_delta)
         VALUES (1, 1, 'top_up', 0, 0, ?1, 0, 0)",
        [BALANCE],
    )
    .unwrap();
    on.execute(
        "INSERT INTO keys (id, wallet, digest, shown_prefix, created_at) VALUES (?1, 1, ?2, 'sk-tg-se', 0)",
        (KeyId::random().to_string(), [7; 32]),
    )
    .unwrap();
}

/// The schema version that the migration has reached.
fn version(path: &Path) -> i32 {
    let on = Connection::open(path).unwrap();
    on.query_row(
        "SELECT max(version) FROM refinery_schema_history",
        [],
        |row| row.get(0),
    )
    .unwrap()
}
