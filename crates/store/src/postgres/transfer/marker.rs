//! Marks an unfinished transfer, with a table that names the source and records how far each table has been copied.
//!
//! While the mark exists, the database cannot be opened.

use tokio_postgres::Client;

use crate::transfer::value::Position;

type Read<T> = Result<T, tokio_postgres::Error>;

/// The row that names the source.
const SOURCE: &str = "the source";

/// Whether a transfer to this database is unfinished.
pub(crate) async fn exists(on: &Client) -> Read<bool> {
    let table = "SELECT to_regclass('unfinished_move') IS NOT NULL";
    on.query_one(table, &[]).await?.try_get(0)
}

/// Creates the mark, unless it exists.
pub(super) async fn make(on: &Client, source: &str) -> Read<()> {
    if exists(on).await? {
        return Ok(());
    }
    on.batch_execute(
        "BEGIN;
         CREATE TABLE unfinished_move (part text PRIMARY KEY, position text NOT NULL, rows bigint NOT NULL)",
    )
    .await?;
    put(on, SOURCE, source, 0).await?;
    on.batch_execute("COMMIT").await
}

pub(super) async fn source(on: &Client) -> Read<Option<String>> {
    if !exists(on).await? {
        return Ok(None);
    }
    Ok(find(on, SOURCE).await?.map(|(source, _)| source))
}

pub(super) async fn position(on: &Client, table: &str) -> Read<Position> {
    let found = find(on, table).await?;
    let position = found.and_then(|(after, rows)| Position::decode(&after, rows));
    Ok(position.unwrap_or_default())
}

pub(super) async fn set_position(on: &Client, table: &str, position: &Position) -> Read<()> {
    let rows = i64::try_from(position.rows).unwrap_or(i64::MAX);
    put(on, table, &position.encode(), rows).await
}

async fn find(on: &Client, part: &str) -> Read<Option<(String, i64)>> {
    let find = "SELECT position, rows FROM unfinished_move WHERE part = $1";
    let found = on.query_opt(find, &[&part]).await?;
    found
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .transpose()
}

async fn put(on: &Client, part: &str, position: &str, rows: i64) -> Read<()> {
    let put = "INSERT INTO unfinished_move (part, position, rows) VALUES ($1, $2, $3)
               ON CONFLICT (part) DO UPDATE SET position = excluded.position, rows = excluded.rows";
    on.execute(put, &[&part, &position, &rows]).await.map(drop)
}
