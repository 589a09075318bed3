//! Marks an unfinished transfer, with a table that names the source and records how far each table has been copied.
//!
//! While a file has the mark, only a transfer can open it. Both files get one. The mark of the ledger's file is made
//! first and removed last, so it alone shows whether the transfer is unfinished.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::transfer::value::Position;

/// The row that names the source.
const SOURCE: &str = "the source";
/// The row which states that everything was copied and verified.
const COMPLETE: &str = "complete";

/// Whether a transfer to this file is unfinished.
pub(crate) fn exists(on: &Connection) -> rusqlite::Result<bool> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'unfinished_move'";
    Ok(on.query_row(table, [], |_| Ok(())).optional()?.is_some())
}

/// Creates the mark, unless it exists.
pub(super) fn make(on: &Connection, source: &str) -> rusqlite::Result<()> {
    if exists(on)? {
        return Ok(());
    }
    let marking = on.unchecked_transaction()?;
    marking.execute_batch(
        "CREATE TABLE unfinished_move (part TEXT PRIMARY KEY, position TEXT NOT NULL, rows INTEGER NOT NULL) STRICT",
    )?;
    put(&marking, SOURCE, source, 0)?;
    marking.commit()
}

pub(super) fn source(on: &Connection) -> rusqlite::Result<Option<String>> {
    if !exists(on)? {
        return Ok(None);
    }
    Ok(find(on, SOURCE)?.map(|(source, _)| source))
}

pub(super) fn position(on: &Connection, table: &str) -> rusqlite::Result<Position> {
    let found = find(on, table)?;
    let position = found.and_then(|(after, rows)| Position::decode(&after, rows));
    Ok(position.unwrap_or_default())
}

pub(super) fn set_position(
    on: &Connection,
    table: &str,
    position: &Position,
) -> rusqlite::Result<()> {
    let rows = i64::try_from(position.rows).unwrap_or(i64::MAX);
    put(on, table, &position.encode(), rows)
}

/// Records that everything was copied and verified. After this, only the marks remain to be removed.
pub(super) fn complete(on: &Connection) -> rusqlite::Result<()> {
    put(on, COMPLETE, "", 0)
}

pub(super) fn is_complete(on: &Connection) -> rusqlite::Result<bool> {
    Ok(exists(on)? && find(on, COMPLETE)?.is_some())
}

pub(super) fn remove(on: &Connection) -> rusqlite::Result<()> {
    on.execute_batch("DROP TABLE IF EXISTS unfinished_move")
}

fn find(on: &Connection, part: &str) -> rusqlite::Result<Option<(String, i64)>> {
    on.prepare_cached("SELECT position, rows FROM unfinished_move WHERE part = ?1")?
        .query_row([part], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

fn put(on: &Connection, part: &str, position: &str, rows: i64) -> rusqlite::Result<()> {
    let put = "INSERT INTO unfinished_move (part, position, rows) VALUES (?1, ?2, ?3)
               ON CONFLICT (part) DO UPDATE SET position = excluded.position, rows = excluded.rows";
    on.prepare_cached(put)?
        .execute(params![part, position, rows])?;
    Ok(())
}
