//! Inspects a database file without changing it.

use std::path::Path;

use super::connection::connect::{APPLICATION_ID, open_error, reader};
use super::connection::files::size;
use super::schema::migrations::{Schema, SchemaAge};
use crate::error::OpenError;
use crate::records::store_state::StoreState;

/// Compares the schema of a file with the program's, and finds out whether the store has a wallet.
pub(crate) fn inspect(path: &Path) -> Result<StoreState, OpenError> {
    if size(path).is_none_or(|bytes| bytes == 0) {
        return Ok(StoreState::Absent);
    }
    let sql = |error| open_error(path, error);
    let connection = reader(path).map_err(sql)?;
    let program: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(sql)?;
    if program != APPLICATION_ID {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
        });
    }
    if let SchemaAge::Older { found, known } = Schema::Ledger.age(&connection, path)? {
        return Ok(StoreState::Older { found, known });
    }
    let wallet = "SELECT EXISTS (SELECT 1 FROM wallets)";
    let is_used = connection.query_row(wallet, [], |row| row.get(0));
    Ok(StoreState::Current {
        version: Schema::Ledger.known(),
        is_used: is_used.map_err(sql)?,
    })
}
