//! Reads stored catalogs.

use ledger::UnixMs;
use rusqlite::{Connection, OptionalExtension as _};

use crate::records::catalog::CatalogDocument;

pub(crate) fn latest(on: &Connection) -> rusqlite::Result<Option<CatalogDocument>> {
    let select =
        "SELECT version, document, made_by, made_at FROM catalogs ORDER BY version DESC LIMIT 1";
    on.prepare_cached(select)?
        .query_row([], |row| {
            Ok(CatalogDocument {
                version: row.get(0)?,
                document: row.get(1)?,
                made_by: row.get(2)?,
                made_at: UnixMs::new(row.get(3)?),
            })
        })
        .optional()
}

/// The version of the latest catalog. 0 if there is none.
pub(crate) fn version(on: &Connection) -> rusqlite::Result<i64> {
    on.prepare_cached("SELECT coalesce(max(version), 0) FROM catalogs")?
        .query_row([], |row| row.get(0))
}
