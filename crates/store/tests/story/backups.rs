//! Tests backups of a store in use, and restoring them.

use std::fs;
use std::path::Path;

use store::{BackupReport, TransferError, TransferReport, backup_store, restore_store};

use crate::moves::{fill, other, seen};
use crate::test_database::{TestDatabase, admit, assert_clean, credits, funded, price, settled};
use crate::usage;

async fn backup(
    database: &TestDatabase,
    media: Option<&Path>,
    to: &Path,
) -> Result<BackupReport, TransferError> {
    backup_store(&database.settings(), media, to, "story", |_| ()).await
}

async fn restore(
    from: &Path,
    database: &TestDatabase,
    media: Option<&Path>,
) -> Result<(TransferReport, u64), TransferError> {
    restore_store(from, &database.settings(), media, |_| ()).await
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = names
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub(crate) async fn a_backup_restores_everything_to_either_database(database: &TestDatabase) {
    fill(database).await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    // A server is running during the backup.
    let store = usage::kept(database);
    usage::write(&store, &usage::rows(8, usage::now())).await;
    store.flush().await.unwrap();
    let before = seen(&store).await;
    let made = backup(database, None, &copy).await.unwrap();
    assert!(made.verified.is_clean() && made.rows > 600, "{made:?}");
    assert_eq!(names(folder.path()), ["copy"]);
    let files = ["backup.json", "tollgate.db", "tollgate.db-calls"];
    assert_eq!(names(&copy), files);
    // Later changes are not in the backup.
    funded(&store, credits(1)).await;
    drop(store);
    for target in [TestDatabase::like(database), other(database)] {
        let (report, _) = restore(&copy, &target, None).await.unwrap();
        assert_eq!(report.abandoned, 0);
        assert_eq!(report.totals, made.totals);
        let store = target.attach();
        assert_eq!(before, seen(&store).await);
        assert_eq!(report.heads, made.verified.heads);
        assert_clean(&store).await;
        let again = restore(&copy, &target, None).await.unwrap();
        assert!(again.0.already_done);
    }
    // The restore has not changed the backup.
    assert_eq!(names(&copy), files);
}

pub(crate) async fn a_backup_of_a_busy_store_is_of_one_moment(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(100)).await;
    let version = price(&store).await;
    let calls = {
        let (store, key) = (store.clone(), key.clone());
        tokio::spawn(async move {
            loop {
                let hold = admit(&store, &key, credits(1)).await.unwrap().hold;
                store.close(settled(hold, version, 1_000));
            }
        })
    };
    let folder = tempfile::tempdir().unwrap();
    let open = admit(&store, &key, credits(2)).await.unwrap();
    open.durable.wait().await.unwrap();
    let copies = ["one", "two", "three"].map(|name| folder.path().join(name));
    for copy in &copies {
        let made = backup(database, None, copy).await.unwrap();
        assert!(made.verified.is_clean(), "{:?}", made.verified.differences);
    }
    calls.abort();
    for (copy, target) in copies
        .iter()
        .zip([TestDatabase::like(database), other(database)])
    {
        let (report, _) = restore(copy, &target, None).await.unwrap();
        assert!(report.abandoned >= 1);
        let store = target.attach();
        let (wallet, key) = store.balance(&key.id).await.unwrap();
        assert_eq!((wallet.frozen.get(), key.open_holds), (0, 0));
        assert_clean(&store).await;
    }
}

pub(crate) async fn nothing_is_overwritten(database: &TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let missing = backup(database, None, &copy).await;
    assert!(
        matches!(missing, Err(TransferError::Missing { .. })),
        "{missing:?}"
    );
    funded(&database.open(), credits(1)).await;
    // The remains of an interrupted backup are replaced, and nothing else.
    assert_eq!(names(folder.path()), ["copy.partial"]);
    let media = folder.path().join("media");
    fs::create_dir_all(&media).unwrap();
    fs::write(media.join(format!("{}.mp4", "a".repeat(32))), "film").unwrap();
    let made = backup(database, Some(&media), &copy).await.unwrap();
    assert_eq!(made.media_files, 1);
    let again = backup(database, None, &copy).await;
    assert!(
        matches!(again, Err(TransferError::Exists { .. })),
        "{again:?}"
    );
    let own = folder.path().join("own.partial");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("thesis"), "").unwrap();
    let refused = backup(database, None, &folder.path().join("own")).await;
    assert!(
        matches!(refused, Err(TransferError::Exists { .. })),
        "{refused:?}"
    );
    assert_eq!(names(&own), ["thesis"]);

    let used = TestDatabase::like(database);
    funded(&used.open(), credits(2)).await;
    let journal_mode = || match &used {
        TestDatabase::Sqlite(folder) => fs::read(folder.path().join("tollgate.db")).unwrap()[18],
        TestDatabase::Postgres(_) => 0,
    };
    if matches!(used, TestDatabase::Sqlite(_)) {
        used.tamper("PRAGMA journal_mode = DELETE");
        assert_eq!(journal_mode(), 1);
    }
    let before = journal_mode();
    let elsewhere = folder.path().join("elsewhere");
    let refused = restore(&copy, &used, Some(&elsewhere)).await;
    assert!(
        matches!(refused, Err(TransferError::NotEmpty { .. })),
        "{refused:?}"
    );
    // The restore is refused before anything is written.
    assert!(!elsewhere.exists());
    assert_eq!(journal_mode(), before);
    let running = used.open();
    let refused = restore(&copy, &used, None).await;
    assert!(
        matches!(refused, Err(TransferError::Running { .. })),
        "{refused:?}"
    );
    drop(running);
}

pub(crate) async fn a_damaged_backup_is_refused(database: &TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    funded(&database.open(), credits(1)).await;
    backup(database, None, &copy).await.unwrap();
    let target = TestDatabase::like(database);
    let refuse = async |why: &str| {
        let refused = restore(&copy, &target, None).await;
        let Err(TransferError::NoBackup { reason, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert!(reason.contains(why), "{reason}");
    };
    let change = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let file = copy.join(name);
        let before = fs::read(&file).unwrap();
        let mut after = before.clone();
        change(&mut after);
        fs::write(&file, after).unwrap();
        before
    };
    for name in ["tollgate.db", "tollgate.db-calls"] {
        let whole = change(name, &|bytes| *bytes.last_mut().unwrap() ^= 1);
        refuse("is damaged").await;
        fs::write(copy.join(name), &whole).unwrap();
        let whole = change(name, &|bytes| bytes.truncate(100));
        refuse("is damaged").await;
        fs::remove_file(copy.join(name)).unwrap();
        refuse(name).await;
        fs::write(copy.join(name), &whole).unwrap();
    }
    let text = String::from_utf8(fs::read(copy.join("backup.json")).unwrap()).unwrap();
    for (from, to, why) in [
        ("\"format\": 1", "\"format\": 2", "format"),
        ("\"tollgate.db-calls\"", "\"../../etc/passwd\"", "missing"),
        ("{", "", "cannot be read"),
    ] {
        fs::write(copy.join("backup.json"), text.replacen(from, to, 1)).unwrap();
        refuse(why).await;
    }
    let strange = "\"files\": [{\"path\": \"../x\", \"bytes\": 1, \"sha256\": \"\"},";
    let strange = text.replacen("\"files\": [", strange, 1);
    fs::write(copy.join("backup.json"), strange).unwrap();
    refuse("none of our files").await;
    fs::write(copy.join("backup.json"), &text).unwrap();
    restore(&copy, &target, None).await.unwrap();
}

pub(crate) async fn a_backup_of_a_wrong_ledger_says_so(database: &TestDatabase) {
    funded(&database.open(), credits(1)).await;
    database.tamper("UPDATE wallets SET balance = balance + 1");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let made = backup(database, None, &copy).await.unwrap();
    assert_eq!(made.verified.differences.len(), 1);
    let refused = restore(&copy, &TestDatabase::like(database), None).await;
    assert!(
        matches!(refused, Err(TransferError::Unclean { .. })),
        "{refused:?}"
    );
    // The files of the backup can still be opened as a store.
    let files = TestDatabase::sqlite().unwrap();
    let TestDatabase::Sqlite(folder) = &files else {
        unreachable!("it was made so")
    };
    for name in ["tollgate.db", "tollgate.db-calls"] {
        fs::copy(copy.join(name), folder.path().join(name)).unwrap();
    }
    let store = files.open();
    let verified = store.verify().await.unwrap();
    assert_eq!(verified.differences, made.verified.differences);
    let key = funded(&store, credits(1)).await;
    let hold = admit(&store, &key, credits(1)).await.unwrap().hold;
    store.close(settled(hold, price(&store).await, 5));
}

pub(crate) async fn media_files_keep_their_times(database: &TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let (media, copy) = (folder.path().join("media"), folder.path().join("copy"));
    let name = format!("{}.mp4", "a1".repeat(16));
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::create_dir_all(media.join("incoming")).unwrap();
    for (name, text) in [
        (&*name, "film"),
        ("incoming/x", "part"),
        ("notes.txt", "own"),
    ] {
        fs::write(media.join(name), text).unwrap();
    }
    let file = fs::File::options().write(true).open(media.join(&name));
    file.unwrap().set_modified(long_ago).unwrap();
    funded(&database.open(), credits(1)).await;
    let made = backup(database, Some(&media), &copy).await.unwrap();
    assert_eq!(made.media_files, 1);
    assert_eq!(names(&copy.join("media")), [&*name]);

    let (there, target) = (folder.path().join("there"), TestDatabase::like(database));
    let (_, restored) = restore(&copy, &target, Some(&there)).await.unwrap();
    assert_eq!(restored, 1);
    assert_eq!(fs::read(there.join(&name)).unwrap(), b"film");
    let found = fs::metadata(there.join(&name)).unwrap();
    assert_eq!(found.modified().unwrap(), long_ago);
    // An existing file stays, and a file that differs is not replaced.
    let (_, restored) = restore(&copy, &target, Some(&there)).await.unwrap();
    assert_eq!(restored, 0);
    fs::write(there.join(&name), "another film").unwrap();
    let refused = restore(&copy, &TestDatabase::like(database), Some(&there)).await;
    assert!(
        matches!(refused, Err(TransferError::Exists { .. })),
        "{refused:?}"
    );
    assert_eq!(fs::read(there.join(&name)).unwrap(), b"another film");
}

/// Before an upgrade, the new program makes a backup of a store with the old schema.
pub(crate) async fn a_backup_of_an_earlier_version_is_upgraded_in_a_copy(database: &TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    database.migrate_to(6).await;
    database.tamper(
        "INSERT INTO wallets (n, id, name, status, created_at)
         VALUES (1, 'wal_0123456789abcdef', 'old', 'active', 1)",
    );
    let made = backup(database, None, &copy).await.unwrap();
    assert!(made.verified.is_clean(), "{:?}", made.verified.differences);
    let before = fs::read(copy.join("tollgate.db")).unwrap();
    let targets = [TestDatabase::like(database), other(database)];
    for target in targets {
        let (report, _) = restore(&copy, &target, None).await.unwrap();
        assert_eq!(report.totals.wallets, 1);
        let store = target.attach();
        assert!(store.find_wallet("old").await.unwrap().is_some());
        assert_clean(&store).await;
    }
    assert_eq!(fs::read(copy.join("tollgate.db")).unwrap(), before);
}
