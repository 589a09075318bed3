//! Reads a `SQLite` file of another program.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::ForeignError;
use super::table::ForeignTable;

/// The maximum wait for a program that writes to the file.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// An open file in a read transaction.
#[derive(Debug)]
pub struct ForeignFile {
    path: PathBuf,
    connection: Connection,
}

impl ForeignFile {
    pub(super) fn open(path: &Path) -> Result<Self, ForeignError> {
        let refused = |error| refused(path, error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
        connection.busy_timeout(LOCK_WAIT_MAX).map_err(refused)?;
        // All tables are read in one snapshot, even while the other program runs.
        connection.execute_batch("BEGIN").map_err(refused)?;
        Ok(Self {
            path: path.to_owned(),
            connection,
        })
    }

    pub(super) fn table(
        &self,
        name: &str,
        columns: &[&str],
    ) -> Result<Option<ForeignTable>, ForeignError> {
        self.read(name, columns)
            .map_err(|error| refused(&self.path, error))
    }

    fn read(&self, name: &str, columns: &[&str]) -> rusqlite::Result<Option<ForeignTable>> {
        let mut info = self
            .connection
            .prepare("SELECT name FROM pragma_table_info(?1)")?;
        let existing = info.query_map([name], |row| row.get::<_, String>(0))?;
        let existing: Vec<String> = existing.collect::<rusqlite::Result<_>>()?;
        if existing.is_empty() {
            return Ok(None);
        }
        let found = columns.iter().copied();
        let found: Vec<&str> = found
            .filter(|column| existing.iter().any(|it| it == column))
            .collect();
        let mut table = ForeignTable::new(&found);
        if found.is_empty() {
            return Ok(Some(table));
        }
        let values = found.iter().map(|it| format!("CAST(\"{it}\" AS TEXT)"));
        let values: Vec<String> = values.collect();
        let select = format!(
            "SELECT {} FROM \"{name}\" ORDER BY rowid",
            values.join(", ")
        );
        let mut select = self.connection.prepare(&select)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let values = (0..found.len()).map(|at| row.get(at));
            table.push(values.collect::<rusqlite::Result<_>>()?);
        }
        Ok(Some(table))
    }
}

fn refused(path: &Path, error: rusqlite::Error) -> ForeignError {
    ForeignError::Database {
        place: path.display().to_string(),
        source: Box::new(error),
    }
}
