//! Reads stored catalogs.

use std::sync::Arc;

use tokio_postgres::{Client, Row};

use crate::postgres::rows::time;
use crate::records::catalog::CatalogDocument;

type Read<T> = Result<T, tokio_postgres::Error>;

pub(crate) async fn latest(on: Arc<Client>) -> Read<Option<CatalogDocument>> {
    let select =
        "SELECT version, document, made_by, made_at FROM catalogs ORDER BY version DESC LIMIT 1";
    let read = |row: &Row| {
        Ok(CatalogDocument {
            version: row.try_get(0)?,
            document: row.try_get(1)?,
            made_by: row.try_get(2)?,
            made_at: time(row, 3)?,
        })
    };
    on.query_opt(select, &[])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

/// The version of the latest catalog. 0 if there is none.
pub(crate) async fn version(on: Arc<Client>) -> Read<i64> {
    let select = "SELECT coalesce(max(version), 0) FROM catalogs";
    on.query_one(select, &[]).await?.try_get(0)
}
