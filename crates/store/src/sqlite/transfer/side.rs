//! A database file and its journal, as one side of a transfer.

use std::fs::File as FsFile;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use super::{marker, rows};
use crate::clock;
use crate::error::OpenError;
use crate::sqlite::connection::connect::{make_writer, open, open_checked, open_error};
use crate::sqlite::connection::files::{beside, size, sync_folder};
use crate::sqlite::connection::open::{journal_path, prepared};
use crate::sqlite::connection::server_lock::ServerLock;
use crate::sqlite::journal::add_pending_usage;
use crate::sqlite::reads::verify::verify;
use crate::sqlite::schema::migrations::{Schema, SchemaAge};
use crate::transfer::TransferError;
use crate::transfer::tables::{File, TABLES, Table};
use crate::transfer::value::{Position, Row, Value};
use crate::verify::{Rule, VerifyReport};

/// After this many written pages, the log is copied into the file and synced.
const LOG_PAGES: u32 = 16_384;

pub(crate) struct SqliteSide {
    path: PathBuf,
    ledger: Connection,
    journal: Connection,
    _lock: Option<ServerLock>,
}

impl SqliteSide {
    /// Opens a source that no server uses. Open transactions on both files keep commands from changing the source.
    pub(crate) fn stopped_source(path: &Path, lock_wait: Duration) -> Result<Self, TransferError> {
        if size(path).is_none_or(|bytes| bytes == 0) {
            let place = path.display().to_string();
            return Err(TransferError::Missing { place });
        }
        let lock = server_lock(path)?;
        let side = Self {
            ledger: prepared(path, Schema::Ledger, lock_wait)?,
            journal: prepared(&journal_path(path), Schema::Journal, lock_wait)?,
            path: path.to_owned(),
            _lock: Some(lock),
        };
        add_pending_usage(&side.journal, clock::now()).map_err(|error| side.failed(error))?;
        for on in [&side.ledger, &side.journal] {
            on.execute_batch("BEGIN IMMEDIATE")
                .map_err(|error| side.failed(error))?;
        }
        Ok(side)
    }

    /// Opens a destination: new files, or those of an unfinished transfer.
    pub(crate) fn destination(path: &Path, lock_wait: Duration) -> Result<Self, TransferError> {
        let lock = server_lock(path)?;
        let journal = journal_path(path);
        let mut side = Self {
            ledger: open_checked(path)?,
            journal: open_checked(&journal)?,
            path: path.to_owned(),
            _lock: Some(lock),
        };
        if side.is_used()? {
            // Either everything was copied before, or the transfer is refused. In both cases the files are not changed.
            return Ok(side);
        }
        prepare_to_fill(&mut side.ledger, path, Schema::Ledger, lock_wait)?;
        prepare_to_fill(&mut side.journal, &journal, Schema::Journal, lock_wait)?;
        // If an earlier attempt has copied and verified everything, only the marks remain to be removed.
        if marker::is_complete(&side.ledger).map_err(|error| side.failed(error))? {
            side.remove_marks()?;
        }
        Ok(side)
    }

    /// Whether the files are a store with rows and with the schema of this program. Returns `false` for files that an
    /// unfinished transfer has filled. Fails if the store has rows and an older schema, because a transfer must not
    /// migrate it.
    fn is_used(&self) -> Result<bool, TransferError> {
        let journal = journal_path(&self.path);
        let ages = [
            Schema::Ledger.compare(&self.ledger, &self.path)?,
            Schema::Journal.compare(&self.journal, &journal)?,
        ];
        let is_earlier = |age: &SchemaAge| matches!(age, SchemaAge::Older { found: 1.., .. });
        let is_earlier = ages.iter().any(is_earlier);
        let is_marked = marker::exists(&self.ledger).map_err(|error| self.failed(error))?;
        if is_marked {
            return Ok(false);
        }
        let mut filled = Vec::new();
        for table in TABLES {
            let (on, name) = (self.file(table), table.sqlite_name());
            // An earlier version does not have every table.
            let exists =
                format!("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '{name}')");
            let has_rows = format!("SELECT EXISTS (SELECT 1 FROM {name})");
            if self.number(on, &exists)? > 0 && self.number(on, &has_rows)? > 0 {
                filled.push(table.name);
            }
        }
        if filled.is_empty() || !is_earlier {
            // A store without all tables cannot be compared with the source.
            return Ok(!filled.is_empty() && ages.iter().all(|age| *age == SchemaAge::Same));
        }
        Err(TransferError::NotEmpty {
            place: self.place(),
            tables: filled.join(", "),
        })
    }

    /// Opens the files of a backup. They are not changed, and no file is created beside them.
    pub(crate) fn read_only(path: &Path) -> Result<Self, TransferError> {
        let side = Self {
            ledger: open_read_only(path)?,
            journal: open_read_only(&journal_path(path))?,
            path: path.to_owned(),
            _lock: None,
        };
        for on in [&side.ledger, &side.journal] {
            on.execute_batch("BEGIN")
                .map_err(|error| side.failed(error))?;
        }
        Ok(side)
    }

    /// Whether the files of a backup have the schema of this program.
    pub(crate) fn is_current(path: &Path) -> Result<bool, TransferError> {
        let journal = journal_path(path);
        for (path, schema) in [(path, Schema::Ledger), (&journal, Schema::Journal)] {
            if schema.age(&open_read_only(path)?, path)? != SchemaAge::Same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies both logs into their files, so that the files alone contain everything.
    pub(crate) fn checkpoint_files(path: &Path) -> Result<(), TransferError> {
        for path in [path, &journal_path(path)] {
            let refused = |error| open_error(path, error);
            let on = open(path, OpenFlags::empty()).map_err(refused)?;
            // Only the journal has this table, since version 5.
            if on.table_exists(None, "usage_pending").map_err(refused)? {
                add_pending_usage(&on, clock::now()).map_err(refused)?;
            }
            on.pragma_update(None, "journal_mode", "DELETE")
                .map_err(refused)?;
        }
        let lock = beside(path, "-lock");
        match std::fs::remove_file(&lock) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(TransferError::io(&lock)(error))
            }
            _ => Ok(()),
        }
    }

    /// Verifies the ledger of a backup. Open holds are not an error, because a restore closes them.
    pub(crate) fn verify_file(path: &Path) -> Result<VerifyReport, TransferError> {
        let refused = |error| open_error(path, error);
        let on = open_read_only(path)?;
        let mut report = verify(&on, &[]).map_err(refused)?;
        let differences = &mut report.differences;
        differences.retain(|difference| difference.rule != Rule::V6Owner);
        Ok(report)
    }

    pub(crate) fn place(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn read(
        &self,
        table: &Table,
        after: Option<&[Value]>,
        limit: usize,
    ) -> Result<Vec<Row>, TransferError> {
        rows::read(self.file(table), table, after, limit).map_err(|error| self.failed(error))
    }

    pub(crate) fn count(&self, table: &Table) -> Result<u64, TransferError> {
        let count = format!("SELECT count(*) FROM {}", table.sqlite_name());
        self.number(self.file(table), &count)
            .map(|count| u64::try_from(count).unwrap_or(0))
    }

    pub(crate) fn last_epoch(&self) -> Result<i64, TransferError> {
        self.number(&self.ledger, "SELECT coalesce(max(epoch), 0) FROM epochs")
    }

    pub(crate) fn orphans(&self) -> Result<u64, TransferError> {
        let orphans = "SELECT count(*) FROM holds h WHERE NOT EXISTS
                       (SELECT 1 FROM tasks t WHERE t.hold = h.id AND t.ended_at IS NULL)";
        self.number(&self.ledger, orphans)
            .map(|count| u64::try_from(count).unwrap_or(0))
    }

    pub(crate) fn verify(&self) -> Result<VerifyReport, TransferError> {
        // Uses another connection, because this one may be in a transaction.
        Self::verify_file(&self.path)
    }

    pub(crate) fn unfinished(&self) -> Result<Option<String>, TransferError> {
        marker::source(&self.ledger).map_err(|error| self.failed(error))
    }

    pub(crate) fn begin(&self, source: &str) -> Result<(), TransferError> {
        // The ledger's mark comes first, because it keeps other processes from opening the database.
        for on in [&self.ledger, &self.journal] {
            marker::make(on, source).map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    pub(crate) fn position(&self, table: &Table) -> Result<Position, TransferError> {
        marker::position(self.file(table), table.name).map_err(|error| self.failed(error))
    }

    pub(crate) fn write(
        &self,
        table: &Table,
        rows: Vec<Row>,
        position: &Position,
    ) -> Result<(), TransferError> {
        let write = || -> rusqlite::Result<()> {
            let batch = self.file(table).unchecked_transaction()?;
            rows::insert(&batch, table, rows)?;
            marker::set_position(&batch, table.name, position)?;
            batch.commit()
        };
        write().map_err(|error| self.failed(error))
    }

    pub(crate) fn finish(&self, last_epoch: i64) -> Result<(), TransferError> {
        let epoch = "INSERT INTO epochs (epoch, started_at)
                     SELECT ?1, ?2 WHERE ?1 > (SELECT coalesce(max(epoch), 0) FROM epochs)";
        let finish = || -> rusqlite::Result<()> {
            self.ledger
                .execute(epoch, params![last_epoch, clock::now().get()])?;
            marker::complete(&self.ledger)
        };
        finish().map_err(|error| self.failed(error))?;
        self.remove_marks()
    }

    /// Removes the marks of both files, after their contents are synced.
    pub(crate) fn remove_marks(&self) -> Result<(), TransferError> {
        let journal = journal_path(&self.path);
        for (on, path) in [(&self.journal, &journal), (&self.ledger, &self.path)] {
            self.sync(on, path)?;
            marker::remove(on).map_err(|error| self.failed(error))?;
            self.sync(on, path)?;
        }
        Ok(())
    }

    /// Copies the log into the file, and syncs both.
    fn sync(&self, on: &Connection, path: &Path) -> Result<(), TransferError> {
        // The checkpoint syncs the log before it copies it, and the file afterwards.
        on.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(|error| self.failed(error))?;
        let io = |source| TransferError::Io {
            path: path.to_owned(),
            source,
        };
        // Only the log is opened here. Closing the database file would drop the locks that SQLite holds on it.
        FsFile::open(beside(path, "-wal"))
            .and_then(|log| log.sync_all())
            .and_then(|()| sync_folder(path))
            .map_err(io)
    }

    fn file(&self, table: &Table) -> &Connection {
        match table.file {
            File::Ledger => &self.ledger,
            File::Journal => &self.journal,
        }
    }

    fn number(&self, on: &Connection, sql: &str) -> Result<i64, TransferError> {
        on.query_row(sql, [], |row| row.get(0))
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: rusqlite::Error) -> TransferError {
        TransferError::Database {
            place: self.place(),
            source: Box::new(error),
        }
    }
}

fn open_read_only(path: &Path) -> Result<Connection, TransferError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags);
    Ok(opened.map_err(|error| open_error(path, error))?)
}

fn server_lock(path: &Path) -> Result<ServerLock, TransferError> {
    ServerLock::try_take(path)?.ok_or_else(|| TransferError::Running {
        place: path.display().to_string(),
        detail: String::new(),
    })
}

/// Prepares a file that is new, empty, or marked as the destination of an unfinished transfer.
fn prepare_to_fill(
    connection: &mut Connection,
    path: &Path,
    schema: Schema,
    lock_wait: Duration,
) -> Result<(), TransferError> {
    let refused = |error| open_error(path, error);
    make_writer(connection, lock_wait).map_err(refused)?;
    connection
        .pragma_update(None, "wal_autocheckpoint", LOG_PAGES)
        .map_err(refused)?;
    if !marker::exists(connection).map_err(refused)? {
        schema.migrate(connection, path)?;
        sync_folder(path).map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source,
        })?;
    } else if schema.compare(connection, path)? != SchemaAge::Same {
        let place = path.display().to_string();
        return Err(TransferError::OtherSource { place });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::transfer::tables::{InSqlite, NOT_COPIED};

    #[test]
    fn every_column_of_every_table_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tollgate.db");
        let side = SqliteSide::destination(&path, Duration::ZERO).unwrap();
        let mut found = BTreeSet::new();
        for on in [&side.ledger, &side.journal] {
            let columns =
                "SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c
                           WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
            let mut columns = on.prepare(columns).unwrap();
            let columns = columns.query_map([], |row| row.get(0)).unwrap();
            found.extend(
                columns
                    .map(|column| column.unwrap())
                    .filter(|column: &String| {
                        let table = column.split('.').next().unwrap();
                        !NOT_COPIED.contains(&table)
                    }),
            );
        }
        let mut copied = BTreeSet::from(["key_states.key".to_owned()]);
        for table in TABLES {
            let name = table.sqlite_name();
            for column in table.columns {
                let name = match column.sqlite {
                    InSqlite::Column | InSqlite::Name => name,
                    InSqlite::State(_) => "key_states",
                    InSqlite::Computed(_) => continue,
                };
                copied.insert(format!("{name}.{}", column.name));
            }
        }
        assert_eq!(found, copied, "transfer/tables lists every column");
    }
}
