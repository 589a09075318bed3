//! Copies the database files page by page, while a server is running.

use std::path::Path;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::side::SqliteSide;
use crate::sqlite::connection::connect::{open, open_error, reader};
use crate::sqlite::connection::files::size;
use crate::sqlite::connection::open::{journal_path, prepared};
use crate::sqlite::schema::migrations::{Schema, SchemaAge};
use crate::transfer::{Progress, TransferError};

/// The number of pages that are copied between two progress reports.
const STEP_PAGES: i32 = 4_096;

/// Copies both files, each as of one moment. The snapshot of the journal is taken first, so that the ledger contains
/// every entry to which the journal refers.
pub(crate) fn copy_pages(
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), TransferError> {
    if size(from).is_none_or(|bytes| bytes == 0) {
        let place = from.display().to_string();
        return Err(TransferError::Missing { place });
    }
    let journal = journal_path(from);
    let journal = match size(&journal) {
        Some(bytes) if bytes > 0 => Some(snapshot(&journal, Schema::Journal)?),
        _ => None,
    };
    let ledger = snapshot(from, Schema::Ledger)?;
    copy(&ledger, to, "ledger", progress)?;
    match journal {
        Some(journal) => copy(&journal, &journal_path(to), "journal", progress)?,
        // No server has used the database, so it has no journal yet.
        None => drop(prepared(
            &journal_path(to),
            Schema::Journal,
            Duration::ZERO,
        )?),
    }
    SqliteSide::checkpoint_files(to)
}

/// Opens a connection that sees the current state of the file until it is closed.
fn snapshot(path: &Path, schema: Schema) -> Result<Connection, TransferError> {
    let refused = |error| open_error(path, error);
    let connection = reader(path).map_err(refused)?;
    connection.execute_batch("BEGIN").map_err(refused)?;
    // The first read takes the snapshot.
    match schema.age(&connection, path)? {
        SchemaAge::Same | SchemaAge::Older { .. } => Ok(connection),
    }
}

fn copy(
    from: &Connection,
    to: &Path,
    step: &'static str,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), TransferError> {
    let refused = |error| open_error(to, error);
    let mut copy = open(to, OpenFlags::SQLITE_OPEN_CREATE).map_err(refused)?;
    let pages = Backup::new(from, &mut copy).map_err(refused)?;
    // All steps read the same snapshot, so a write of the server does not restart the copy.
    loop {
        let copied = pages.step(STEP_PAGES).map_err(refused)?;
        let done = pages.progress();
        let count = |pages: i32| u64::try_from(pages).unwrap_or(0);
        progress(Progress {
            step,
            done: count(done.pagecount - done.remaining),
            total: count(done.pagecount),
        });
        if copied == StepResult::Done {
            return Ok(());
        }
    }
}
