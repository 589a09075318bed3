//! The environment of an execution: a database of its own, and a record of the answers that callers got.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use ledger::{Micro, UnixMs};
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use tempfile::TempDir;

use super::plan::Plan;
use crate::books::Limits;
use crate::records::accounts::{KeyLimits, NewKey, NewWallet};
use crate::records::ids::{Digest, Epoch, HoldId, KeyId, PriceVersion, WalletId};
use crate::sqlite::connection::connect::{make_writer, open, reader};
use crate::sqlite::connection::open::prepared;
use crate::sqlite::recovery::begin_epoch;
use crate::sqlite::schema::migrations::Schema;
use crate::sqlite::writer::ledger::Ledger;
use crate::sqlite::writer::writer_lock::WriterLock;

pub(super) const NOW: UnixMs = UnixMs::new(1_800_000_000_000);
/// The initial balance. It is too small for some calls.
const FUNDS: Micro = Micro::new(45);

pub(super) const LIMITS: Limits = Limits {
    cached_rows_max: 16,
    debt_limit: Micro::ZERO,
};

/// A database with one wallet and one key. Every execution gets a copy.
#[derive(Debug)]
pub(super) struct Template {
    folder: TempDir,
    pub(super) epoch: Epoch,
    pub(super) wallet: WalletId,
    pub(super) key: KeyId,
    pub(super) price: PriceVersion,
    copies: AtomicU64,
    pub(super) counts: Counts,
}

/// The numbers of outcomes in all executions together.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) answered: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) failed_commits: AtomicU64,
    pub(super) rebooked: AtomicU64,
}

impl Template {
    pub(super) fn new() -> Self {
        // Uses memory if possible, because the tests do not depend on a real disk.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let folder = folder.unwrap();
        let path = folder.path().join("template.db");
        let connection = prepared(&path, Schema::Ledger, Duration::ZERO).unwrap();
        let epoch = begin_epoch(&connection, NOW).unwrap();
        let writer_lock = WriterLock::open(&path, Duration::ZERO).unwrap();
        let mut ledger =
            Ledger::new(&connection, epoch, LIMITS, Arc::default(), writer_lock).unwrap();
        ledger.begin().unwrap();
        let (wallet, key) = (WalletId::random(), KeyId::random());
        let new = NewWallet {
            name: "acme".to_owned(),
            balance: FUNDS,
            gift: Micro::ZERO,
            credit_limit: Micro::ZERO,
        };
        ledger
            .create_wallet(wallet, new, NOW, &crate::Actor::cli("test"))
            .unwrap();
        let new = NewKey {
            wallet,
            name: None,
            digest: Digest::of(b"secret"),
            shown_prefix: "sk".to_owned(),
            limits: KeyLimits::default(),
            tags: Vec::new(),
        };
        ledger
            .create_key(key, new, NOW, &crate::Actor::cli("test"))
            .unwrap();
        let price = ledger.price_version("a/model", r#"{"input":"1"}"#, NOW);
        let price = price.unwrap();
        ledger.commit().unwrap();
        drop(ledger);
        // SQLite copies the log into the file when the last connection is closed.
        drop(connection);
        Self {
            folder,
            epoch,
            wallet,
            key,
            price,
            copies: AtomicU64::default(),
            counts: Counts::default(),
        }
    }

    pub(super) fn copy(&self) -> Database {
        let n = self.copies.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(n.to_string());
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("tollgate.db");
        std::fs::copy(self.folder.path().join("template.db"), &path).unwrap();
        Database { folder, path }
    }

    pub(super) fn summary(&self) -> String {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts {
            answered,
            lost,
            refused,
            failed_commits,
            rebooked,
        } = &self.counts;
        format!(
            "{} calls answered, {} lost, {} refused; {} commits failed, {} charges booked without their hold",
            read(answered),
            read(lost),
            read(refused),
            read(failed_commits),
            read(rebooked)
        )
    }
}

#[derive(Debug)]
pub(super) struct Database {
    folder: PathBuf,
    pub(super) path: PathBuf,
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Database {
    /// Opens a connection that writes without syncs.
    pub(super) fn writer(&self) -> Connection {
        let mut connection = open(&self.path, rusqlite::OpenFlags::empty()).unwrap();
        make_writer(&mut connection, Duration::ZERO).unwrap();
        connection
            .pragma_update(None, "synchronous", "OFF")
            .unwrap();
        connection
    }

    /// Opens the writer's connection with the faults of a plan.
    pub(super) fn faulty_writer(&self, plan: &Plan) -> Connection {
        let mut connection = self.writer();
        let (first, end) = plan.failing_commits;
        let tried = AtomicU32::new(0);
        let fail_commit = move || (first..end).contains(&tried.fetch_add(1, Ordering::Relaxed));
        connection.commit_hook(Some(fail_commit)).unwrap();
        let misreported = plan.misreported_commit;
        let committed = AtomicU32::new(0);
        let misreport_commit = move |_: &mut Wal, _| {
            if misreported == Some(committed.fetch_add(1, Ordering::Relaxed)) {
                let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
                return Err(rusqlite::Error::SqliteFailure(error, None));
            }
            Ok(())
        };
        connection.wal_hook(Some(misreport_commit)).unwrap();
        connection
    }

    pub(super) fn reader(&self) -> Connection {
        reader(&self.path).unwrap()
    }
}

/// The holds of a database: the open ones, and for each closed one the kind and charge of its entry.
#[derive(Debug, Default)]
pub(super) struct Holds {
    pub(super) closed: BTreeMap<i64, (String, i64)>,
    pub(super) open: BTreeSet<i64>,
    /// Charges that were booked without their hold.
    pub(super) noted: u64,
}

impl Holds {
    pub(super) fn read(on: &Connection) -> Self {
        let mut holds = Self::default();
        let mut select = on
            .prepare_cached(
                "SELECT closes, kind, charge, note FROM entries WHERE closes IS NOT NULL",
            )
            .unwrap();
        let rows = select.query_map([], |row| {
            let note: Option<String> = row.get(3)?;
            Ok((row.get(0)?, (row.get(1)?, row.get(2)?), note.is_some()))
        });
        for row in rows.unwrap() {
            let (hold, close, noted) = row.unwrap();
            assert!(holds.closed.insert(hold, close).is_none(), "closed twice");
            holds.noted += u64::from(noted);
        }
        let mut select = on.prepare_cached("SELECT id FROM holds").unwrap();
        let rows = select.query_map([], |row| row.get(0)).unwrap();
        holds.open = rows.map(Result::unwrap).collect();
        holds
    }

    pub(super) fn has(&self, hold: HoldId) -> bool {
        self.closed.contains_key(&hold.get()) || self.open.contains(&hold.get())
    }
}

/// Records the answers that callers got. The checker does not control this lock, which is held only briefly.
#[derive(Debug, Default)]
pub(super) struct AnswerLog(Mutex<Answers>);

#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Answered calls and their charges.
    pub(super) answered: BTreeMap<i64, i64>,
    /// Answered calls whose hold was confirmed as durable.
    pub(super) promised: BTreeSet<i64>,
    /// Admitted calls that were released, or that were reported to their callers as failed.
    pub(super) free: BTreeSet<i64>,
    pub(super) refused: u64,
    /// The contents of the disk when the last sync began.
    pub(super) on_disk: Holds,
}

impl AnswerLog {
    pub(super) fn with_answers<T>(&self, update: impl FnOnce(&mut Answers) -> T) -> T {
        update(&mut self.0.lock())
    }
}
