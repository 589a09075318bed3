//! Creates a hundred thousand keys in a second or two.
//!
//! The command line creates one key. The other keys are copies of its row with another id, digest
//! and wallet, so a new column of the store needs no change here. The secrets are the same in every
//! store, so that the same load works for all of them.

use std::io;
use std::path::Path;

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

/// The secrets of all copies, in an order that does not depend on rows or wallets.
pub(super) fn secrets(count: usize) -> Vec<String> {
    let mut secrets: Vec<String> = (1..=count).map(secret).collect();
    secrets.sort_by_cached_key(|secret| digest(secret));
    secrets
}

fn secret(number: usize) -> String {
    format!("sk-tg-{number:043}")
}

/// Copies the only key of a new database file `count` times and spreads the copies over all
/// wallets.
pub(super) fn multiply(database: &Path, key_id: &str, count: usize) -> io::Result<()> {
    let mut connection = Connection::open(database).map_err(io::Error::other)?;
    copy_rows(&mut connection, key_id, count).map_err(io::Error::other)
}

fn copy_rows(connection: &mut Connection, key_id: &str, count: usize) -> rusqlite::Result<()> {
    let all = connection.transaction()?;
    let wallets: Vec<i64> = integers(&all, "SELECT n FROM wallets ORDER BY n")?;
    let key_number: i64 =
        all.query_row("SELECT n FROM keys WHERE id = ?1", params![key_id], |row| {
            row.get(0)
        })?;
    {
        let mut copy = all.prepare(&copy_statement(&all)?)?;
        for (number, wallet) in (1..=count).zip(wallets.iter().cycle()) {
            let id = format!("key_{number:016}");
            copy.execute(params![
                id,
                digest(&secret(number)).as_slice(),
                wallet,
                key_number
            ])?;
        }
    }
    all.commit()
}

/// The statement that copies a key: all columns are kept, except the row number and the three that
/// must differ.
fn copy_statement(connection: &Connection) -> rusqlite::Result<String> {
    let mut columns =
        connection.prepare("SELECT name FROM pragma_table_info('keys') WHERE pk = 0")?;
    let names: Vec<String> = columns
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let value = |name: &String| match name.as_str() {
        "id" => "?1".to_owned(),
        "digest" => "?2".to_owned(),
        "wallet" => "?3".to_owned(),
        _ => name.clone(),
    };
    let values: Vec<String> = names.iter().map(value).collect();
    Ok(format!(
        "INSERT INTO keys ({}) SELECT {} FROM keys WHERE n = ?4",
        names.join(", "),
        values.join(", ")
    ))
}

fn integers(connection: &Connection, query: &str) -> rusqlite::Result<Vec<i64>> {
    connection
        .prepare(query)?
        .query_map([], |row| row.get(0))?
        .collect()
}

fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of the store, so that this test notices when they change.
    const TABLES: &str = include_str!("../../../store/migrations/ledger/V1__ledger.sql");

    #[test]
    fn copies_have_the_limits_of_the_made_key_and_secrets_of_their_own() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLES).unwrap();
        connection
            .execute_batch(
                "INSERT INTO wallets (n, id, name, status, created_at)
                 VALUES (1, 'wal_a', 'a', 'active', 0), (2, 'wal_b', 'b', 'active', 0)",
            )
            .unwrap();
        connection
            .execute(
                "INSERT INTO keys (id, wallet, digest, shown_prefix, rpm_limit, created_at)
                 VALUES ('key_made', 1, ?1, 'sk-tg-x', 77, 0)",
                params![digest("made").as_slice()],
            )
            .unwrap();

        copy_rows(&mut connection, "key_made", 100).unwrap();

        let secrets = secrets(100);
        assert_eq!(secrets.len(), 100);
        for secret in &secrets {
            let found = connection.query_row(
                "SELECT rpm_limit FROM keys WHERE digest = ?1",
                params![digest(secret).as_slice()],
                |row| row.get(0),
            );
            assert_eq!(found, Ok(77));
        }
        let of_wallets =
            integers(&connection, "SELECT count(*) FROM keys GROUP BY wallet").unwrap();
        assert_eq!(of_wallets, [51, 50]);
    }

    #[test]
    fn a_key_that_is_not_stored_is_an_error() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLES).unwrap();
        assert!(copy_rows(&mut connection, "key_made", 10).is_err());
    }
}
