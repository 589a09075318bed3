//! Reads and inserts the rows of any table.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use crate::sqlite::journal::Names;
use crate::transfer::tables::{Column, InSqlite, Table};
use crate::transfer::value::{Row, Value};

/// Reads the next rows of a table, ordered by its key.
pub(super) fn read(
    on: &Connection,
    table: &Table,
    after: Option<&[Value]>,
    limit: usize,
) -> rusqlite::Result<Vec<Row>> {
    let columns: Vec<String> = table.columns.iter().map(expression).collect();
    let key: Vec<String> = table
        .key_columns()
        .map(|column| format!("t.{}", column.name))
        .collect();
    let (columns, key) = (columns.join(", "), key.join(", "));
    let from = table.sqlite_from;
    let behind = match after {
        Some(after) => format!("WHERE ({key}) > ({})", marks(after.len())),
        None => String::new(),
    };
    let select = format!("SELECT {columns} FROM {from} {behind} ORDER BY {key} LIMIT {limit}");
    let mut select = on.prepare_cached(&select)?;
    let rows = select.query_map(params_from_iter(after.into_iter().flatten()), |row| {
        (0..table.columns.len())
            .map(|column| value(row.get_ref(column)?))
            .collect()
    })?;
    rows.collect()
}

fn expression(column: &Column) -> String {
    let name = column.name;
    match column.sqlite {
        InSqlite::Column => format!("t.{name}"),
        InSqlite::Computed(expression) | InSqlite::State(expression) => expression.to_owned(),
        InSqlite::Name => format!("(SELECT names.name FROM names WHERE names.n = t.{name})"),
    }
}

fn value(found: ValueRef<'_>) -> rusqlite::Result<Value> {
    Ok(match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_owned()),
        // None of our columns is a float, so a float causes an error.
        ValueRef::Text(_) | ValueRef::Real(_) => Value::Text(found.as_str()?.to_owned()),
    })
}

/// Inserts rows, within a transaction.
pub(super) fn insert(on: &Connection, table: &Table, mut rows: Vec<Row>) -> rusqlite::Result<()> {
    match table.name {
        "calls" => number_calls(on, table, &mut rows)?,
        "keys" => insert_states(on, table, &rows)?,
        _ => {}
    }
    let is_here = |column: &Column| matches!(column.sqlite, InSqlite::Column | InSqlite::Name);
    let name = table.sqlite_from.split(' ').next().unwrap_or(table.name);
    insert_columns(on, name, table, is_here, &rows)
}

fn insert_columns(
    on: &Connection,
    name: &str,
    table: &Table,
    is_here: impl Fn(&Column) -> bool,
    rows: &[Row],
) -> rusqlite::Result<()> {
    let columns: Vec<&str> = table
        .columns
        .iter()
        .filter(|column| is_here(column))
        .map(|column| column.name)
        .collect();
    let (marks, columns) = (marks(columns.len()), columns.join(", "));
    let insert = format!("INSERT INTO {name} ({columns}) VALUES ({marks})");
    let mut insert = on.prepare_cached(&insert)?;
    for row in rows {
        let values = table.columns.iter().zip(row);
        let values = values.filter(|(column, _)| is_here(column));
        insert.execute(params_from_iter(values.map(|(_, value)| value)))?;
    }
    Ok(())
}

/// Inserts the states of keys, which calls change. A key that was never used has no state row.
fn insert_states(on: &Connection, table: &Table, rows: &[Row]) -> rusqlite::Result<()> {
    let is_state = |column: &Column| matches!(column.sqlite, InSqlite::State(_));
    let columns: Vec<&str> = table
        .columns
        .iter()
        .filter(|column| is_state(column))
        .map(|column| column.name)
        .collect();
    let (marks, columns) = (marks(columns.len() + 1), columns.join(", "));
    let insert = format!("INSERT INTO key_states (key, {columns}) VALUES ({marks})");
    let mut insert = on.prepare_cached(&insert)?;
    for row in rows {
        let states = table.columns.iter().zip(row);
        let states = states.filter(|(column, _)| is_state(column));
        let states = states.map(|(_, value)| value);
        if states.clone().any(|state| state.integer() != 0) {
            insert.execute(params_from_iter(row.iter().take(1).chain(states)))?;
        }
    }
    Ok(())
}

/// Replaces names with their numbers, and makes row numbers unique, which nodes of a cluster do not guarantee.
fn number_calls(on: &Connection, table: &Table, rows: &mut [Row]) -> rusqlite::Result<()> {
    let mut names = Names::new(on);
    for row in rows {
        let mut wallet = None;
        for (column, value) in table.columns.iter().zip(row) {
            let number = match (column.name, &*value) {
                ("n", Value::Integer(number)) => names.take_number(*number),
                ("wallet", Value::Text(id)) => *wallet.insert(names.word(id)?),
                ("key", Value::Text(id)) => names.key(id, wallet)?,
                (_, Value::Text(name)) if column.sqlite == InSqlite::Name => names.word(name)?,
                _ => continue,
            };
            *value = Value::Integer(number);
        }
    }
    Ok(())
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
