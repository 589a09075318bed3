//! Tests files that are newer, damaged, or belong to another program.

use rusqlite::Connection;

use super::rig::*;
use crate::sqlite::connection::files::beside;
use crate::{OpenError, Store};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_refused_and_left_alone() {
    let Rig { folder, store, .. } = Rig::new().await;
    drop(store);
    let (path, settings) = (database(folder.path()), settings(folder.path()));
    let newer = "INSERT INTO refinery_schema_history SELECT 999, 'later', applied_on, checksum
                 FROM refinery_schema_history LIMIT 1";
    Connection::open(&path)
        .unwrap()
        .execute_batch(newer)
        .unwrap();
    for refused in [
        Store::open(&settings).map(drop),
        Store::attach(&settings).map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, OpenError::NewerSchema { found: 999, .. }),
            "{refused}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_refused_by_name_and_left_alone() {
    let Rig { folder, store, .. } = Rig::new().await;
    drop(store);
    let (path, settings) = (database(folder.path()), settings(folder.path()));
    let whole = std::fs::read(&path).unwrap();
    assert!(
        std::fs::metadata(beside(&path, "-wal")).is_err(),
        "the last to leave folds the log"
    );
    for (what, damage) in [
        ("header", 0..64),
        ("first page", 100..160),
        ("some tables", 4_096..whole.len().min(40_960)),
    ] {
        let mut bytes = whole.clone();
        bytes[damage].fill(0x5a);
        std::fs::write(&path, &bytes).unwrap();
        let refused = Store::open(&settings).map(drop).unwrap_err();
        assert!(
            matches!(refused, OpenError::Corrupt { .. }),
            "{what}: {refused}"
        );
        assert!(
            refused.to_string().contains(&*path.to_string_lossy()),
            "{what}: {refused}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{what}");
    }
    std::fs::write(&path, &whole).unwrap();
    Store::open(&settings).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, settings) = (database(folder.path()), settings(folder.path()));
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (a)")
        .unwrap();
    let refused = Store::open(&settings).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
}
