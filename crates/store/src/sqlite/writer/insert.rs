//! Inserts many rows, several per statement.
//!
//! The fixed cost of a statement is about as large as the cost of a small row.

use rusqlite::{Connection, Statement, ToSql};

/// The number of rows that one statement inserts, if there are that many.
const ROWS: usize = 16;

pub(crate) struct Insert<'c> {
    one: Statement<'c>,
    many: Option<Statement<'c>>,
}

impl<'c> Insert<'c> {
    /// Prepares the statements. `into` is the statement up to `VALUES`. Each row has `columns` values.
    pub(crate) fn prepare(
        on: &'c Connection,
        into: &str,
        columns: usize,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            many: Some(on.prepare(&statement(into, columns, ROWS))?),
            ..Self::prepare_single(on, into, columns)?
        })
    }

    /// Like [`prepare`](Self::prepare), for rows that are inserted one at a time.
    pub(crate) fn prepare_single(
        on: &'c Connection,
        into: &str,
        columns: usize,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            one: on.prepare(&statement(into, columns, 1))?,
            many: None,
        })
    }

    /// Inserts all items in order. `columns` adds the values of one item's row.
    pub(crate) fn all<T>(
        &mut self,
        items: &[T],
        mut columns: impl FnMut(&T, &mut Values<'_, 'c>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut put = |statement: &mut Statement<'c>, rows: &[T]| {
            let mut values = Values {
                statement,
                count: 0,
            };
            rows.iter().try_for_each(|row| columns(row, &mut values))?;
            debug_assert_eq!(values.count, values.statement.parameter_count());
            values.statement.raw_execute().map(drop)
        };
        let mut rest = items;
        let mut done = Ok(());
        if let Some(many) = &mut self.many
            && items.len() >= ROWS
        {
            let (full, left) = items.as_chunks::<ROWS>();
            rest = left;
            done = full.iter().try_for_each(|rows| put(many, rows));
            // Frees the bound values, which may contain whole bodies.
            many.clear_bindings();
        }
        let done = done.and_then(|()| {
            let mut rows = rest.chunks(1);
            rows.try_for_each(|row| put(&mut self.one, row))
        });
        self.one.clear_bindings();
        done
    }
}

fn statement(into: &str, columns: usize, rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(", "));
    format!("{into} VALUES {}", vec![row; rows].join(", "))
}

/// Binds the values of a statement, one after the other.
pub(crate) struct Values<'s, 'c> {
    statement: &'s mut Statement<'c>,
    count: usize,
}

impl Values<'_, '_> {
    pub(crate) fn add(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.count += 1;
        self.statement.raw_bind_parameter(self.count, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let create =
            "CREATE TABLE t (n INTEGER PRIMARY KEY, square INTEGER NOT NULL, word TEXT) STRICT";
        connection.execute_batch(create).unwrap();
        connection
    }

    const INTO: &str = "INSERT OR ROLLBACK INTO t (n, square, word)";

    fn put(mut insert: Insert<'_>, items: &[i64]) -> rusqlite::Result<()> {
        insert.all(items, |n, values| {
            values.add(n)?;
            values.add(n * n)?;
            values.add((n % 3 == 0).then(|| n.to_string()))
        })
    }

    #[test]
    fn any_number_of_rows_is_put_in_as_it_is_said() {
        for count in [0, 1, 15, 16, 17, 31, 32, 50] {
            let connection = table();
            let items: Vec<i64> = (1..=count).collect();
            put(Insert::prepare(&connection, INTO, 3).unwrap(), &items).unwrap();
            let mut alone: Vec<i64> = items.iter().map(|n| -n).collect();
            put(
                Insert::prepare_single(&connection, INTO, 3).unwrap(),
                &alone,
            )
            .unwrap();
            let mut select = connection
                .prepare("SELECT n, square, word FROM t ORDER BY rowid")
                .unwrap();
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            let rows: Vec<(i64, i64, Option<String>)> = rows.unwrap().map(Result::unwrap).collect();
            let said = |n: i64| (n, n * n, (n % 3 == 0).then(|| n.to_string()));
            alone.reverse();
            alone.extend(items);
            assert_eq!(rows, alone.into_iter().map(said).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_row_that_is_refused_undoes_the_transaction() {
        for count in [2, 15, 16, 31] {
            let connection = table();
            let mut items: Vec<i64> = (1..=count).collect();
            items.push(1);
            connection.execute_batch("BEGIN").unwrap();
            let insert = Insert::prepare(&connection, INTO, 3).unwrap();
            assert!(put(insert, &items).is_err());
            assert!(connection.is_autocommit());
            let left: i64 = connection
                .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
                .unwrap();
            assert_eq!(left, 0, "{count}");
        }
    }
}
