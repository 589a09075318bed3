//! Inserts of many rows, several by one statement.
//!
//! A statement costs about as much as a small row does: it is begun and ended, its tables are opened,
//! its constants made.

use rusqlite::{Connection, Statement, ToSql};

/// How many rows one statement puts in, where there are as many.
const ROWS: usize = 16;

pub(super) struct Insert<'c> {
    one: Statement<'c>,
    many: Statement<'c>,
}

impl<'c> Insert<'c> {
    /// `into` is the statement up to the values, of which a row has as many as `columns`.
    pub(super) fn prepare(
        on: &'c Connection,
        into: &str,
        columns: usize,
    ) -> rusqlite::Result<Self> {
        let row = format!("({})", vec!["?"; columns].join(", "));
        let rows = |count| format!("{into} VALUES {}", vec![row.as_str(); count].join(", "));
        Ok(Self {
            one: on.prepare(&rows(1))?,
            many: on.prepare(&rows(ROWS))?,
        })
    }

    /// Puts all in, in order; `columns` says the values of each.
    pub(super) fn all<T>(
        &mut self,
        items: &[T],
        mut columns: impl FnMut(&T, &mut Values<'_, 'c>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let (full, rest) = items.as_chunks::<ROWS>();
        let mut put = |statement: &mut Statement<'c>, rows: &[T]| {
            let mut values = Values {
                statement,
                count: 0,
            };
            rows.iter().try_for_each(|row| columns(row, &mut values))?;
            debug_assert_eq!(values.count, values.statement.parameter_count());
            values.statement.raw_execute().map(drop)
        };
        let many = full.iter().try_for_each(|rows| put(&mut self.many, rows));
        let done = many.and_then(|()| {
            let mut rows = rest.chunks(1);
            rows.try_for_each(|row| put(&mut self.one, row))
        });
        // What was said, bodies among it, is not kept until the next time.
        self.one.clear_bindings();
        if !full.is_empty() {
            self.many.clear_bindings();
        }
        done
    }
}

/// The values of a statement, said one after the other.
pub(super) struct Values<'s, 'c> {
    statement: &'s mut Statement<'c>,
    count: usize,
}

impl Values<'_, '_> {
    pub(super) fn add(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
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

    fn put(connection: &Connection, items: &[i64]) -> rusqlite::Result<()> {
        let into = "INSERT OR ROLLBACK INTO t (n, square, word)";
        let mut insert = Insert::prepare(connection, into, 3)?;
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
            put(&connection, &items).unwrap();
            let mut select = connection
                .prepare("SELECT n, square, word FROM t ORDER BY rowid")
                .unwrap();
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            let rows: Vec<(i64, i64, Option<String>)> = rows.unwrap().map(Result::unwrap).collect();
            let said = |n: i64| (n, n * n, (n % 3 == 0).then(|| n.to_string()));
            assert_eq!(rows, items.into_iter().map(said).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_row_that_is_refused_undoes_the_transaction() {
        for count in [2, 15, 16, 31] {
            let connection = table();
            let mut items: Vec<i64> = (1..=count).collect();
            items.push(1);
            connection.execute_batch("BEGIN").unwrap();
            assert!(put(&connection, &items).is_err());
            assert!(connection.is_autocommit());
            let left: i64 = connection
                .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
                .unwrap();
            assert_eq!(left, 0, "{count}");
        }
    }
}
