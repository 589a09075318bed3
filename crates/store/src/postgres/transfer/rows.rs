//! Reads and copies the rows of any table.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rand::RngExt as _;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::values::type_of;
use crate::postgres::journal::make_days;
use crate::transfer::TransferError;
use crate::transfer::tables::{Column, File, InPostgres, Table};
use crate::transfer::value::{Row, Value};

/// Reads the next rows of a table, ordered by its key.
pub(super) async fn read(
    on: &Client,
    table: &Table,
    after: Option<&[Value]>,
    limit: usize,
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let columns: Vec<String> = table.columns.iter().map(expression).collect();
    let key: Vec<String> = table
        .key_columns()
        .map(|column| format!("t.{}", column.name))
        .collect();
    let (columns, key, name) = (columns.join(", "), key.join(", "), table.name);
    let behind = match after {
        Some(after) => {
            let marks: Vec<String> = (1..=after.len()).map(|mark| format!("${mark}")).collect();
            format!("WHERE ({key}) > ({})", marks.join(", "))
        }
        None => String::new(),
    };
    let select = format!("SELECT {columns} FROM {name} t {behind} ORDER BY {key} LIMIT {limit}");
    let after: Vec<&(dyn ToSql + Sync)> = after
        .into_iter()
        .flatten()
        .map(|value| value as &(dyn ToSql + Sync))
        .collect();
    let found = on.query(&select, &after).await?;
    let row = |row: &tokio_postgres::Row| {
        (0..table.columns.len())
            .map(|column| row.try_get(column))
            .collect()
    };
    found.iter().map(row).collect()
}

fn expression(column: &Column) -> String {
    match column.postgres {
        InPostgres::Column => format!("t.{}", column.name),
        InPostgres::Computed(expression) | InPostgres::ReadAs(expression) => expression.to_owned(),
    }
}

fn is_here(column: &Column) -> bool {
    !matches!(column.postgres, InPostgres::Computed(_))
}

/// Replaces NUL in rows of the journal, as the journal's writer does, because `PostgreSQL` texts cannot contain NUL. In
/// the ledger, NUL is an error, because the ledger's texts are hashed and must not be changed.
pub(super) fn replace_nul(table: &Table, rows: &mut [Row]) -> Result<(), TransferError> {
    for row in rows {
        for (column, value) in table.columns.iter().zip(row) {
            let Value::Text(text) = value else { continue };
            if !text.contains('\0') {
                continue;
            }
            if table.file == File::Ledger {
                return Err(TransferError::Text {
                    table: table.name,
                    column: column.name,
                });
            }
            *text = text.replace('\0', "\u{fffd}");
            if table.name == "usage_series" {
                // Another series may already have the new name. A random number avoids that, because nobody can choose
                // a name that contains it. Writing to a `String` does not fail.
                let _ = write!(text, "~{:016x}", rand::rng().random::<u64>());
            }
        }
    }
    Ok(())
}

/// Copies rows within the caller's transaction.
pub(super) async fn copy(
    on: &Client,
    table: &Table,
    rows: &[Row],
) -> Result<(), tokio_postgres::Error> {
    let columns: Vec<&Column> = table.columns.iter().filter(|it| is_here(it)).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let types: Vec<Type> = columns.iter().map(|column| type_of(column.kind)).collect();
    let (name, names) = (table.name, names.join(", "));
    let sink = on
        .copy_in(&format!("COPY {name} ({names}) FROM STDIN BINARY"))
        .await?;
    let mut to = std::pin::pin!(BinaryCopyInWriter::new(sink, &types));
    for row in rows {
        let values = table.columns.iter().zip(row);
        let values = values.filter(|(column, _)| is_here(column));
        let values: Vec<&(dyn ToSql + Sync)> = values
            .map(|(_, value)| value as &(dyn ToSql + Sync))
            .collect();
        to.as_mut().write(&values).await?;
    }
    to.finish().await?;
    Ok(())
}

/// Creates the journal's tables for the days of the rows.
pub(super) async fn prepare_days(on: &Client, rows: &[Row]) -> Result<(), tokio_postgres::Error> {
    let numbers: BTreeSet<i64> = rows
        .iter()
        .filter_map(|row| row.first())
        .map(Value::integer)
        .collect();
    make_days(on, numbers).await
}
