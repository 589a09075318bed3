//! Copies all tables in batches, and continues where an earlier attempt stopped.

use super::contents::StoreContents;
use super::error::TransferError;
use super::report::Progress;
use super::side::Side;
use super::tables::{TABLES, Table};
use super::value::{Position, Row};

/// Copies the missing rows. Returns whether an earlier attempt had copied any.
pub(crate) async fn copy(
    from: &Side,
    to: &mut Side,
    source: &StoreContents,
    progress: &mut dyn FnMut(Progress),
) -> Result<bool, TransferError> {
    let total = source.rows();
    let mut done = 0;
    let mut resumed = false;
    for table in TABLES {
        let mut position = to.position(table).await?;
        resumed |= position.rows > 0;
        let mut limit = table.batch_rows;
        loop {
            progress(Progress {
                step: table.name,
                done: done + position.rows,
                total,
            });
            let after = position.after.as_deref();
            let mut rows = from.read(table, after, limit).await?;
            let is_last = rows.len() < limit;
            if !is_last && !end_between_keys(table, &mut rows) {
                // All rows of the batch have the same key. They must stay together, because the next batch begins after
                // that key.
                limit *= 2;
                continue;
            }
            limit = table.batch_rows;
            if let Some(last) = rows.last() {
                let after = last.iter().take(table.key).cloned().collect();
                position = Position {
                    after: Some(after),
                    rows: position.rows + rows.len() as u64,
                };
                to.write(table, rows, &position).await?;
            }
            if is_last {
                break;
            }
        }
        done += position.rows;
    }
    Ok(resumed)
}

/// Removes the rows with the last key, because more of them may follow. Returns whether any rows are left.
fn end_between_keys(table: &Table, rows: &mut Vec<Row>) -> bool {
    let Some(last) = rows.pop() else {
        return false;
    };
    let same = |row: &Row| row.iter().take(table.key).eq(last.iter().take(table.key));
    while rows.last().is_some_and(same) {
        rows.pop();
    }
    !rows.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::value::Value;
    use super::*;

    #[test]
    fn a_batch_ends_between_two_keys() {
        let calls = TABLES.iter().find(|table| table.name == "calls").unwrap();
        for (keys, left) in [
            (vec![1, 2, 3], vec![1, 2]),
            (vec![1, 2, 2], vec![1]),
            (vec![2, 2], vec![]),
            (vec![], vec![]),
        ] {
            let row = |key: &i64| vec![Value::Integer(*key), Value::Null];
            let mut rows: Vec<Row> = keys.iter().map(row).collect();
            assert_eq!(end_between_keys(calls, &mut rows), !left.is_empty());
            assert_eq!(rows, left.iter().map(row).collect::<Vec<_>>());
        }
    }
}
