//! A temporary schema on a `PostgreSQL` server.

use std::io;

use tokio_postgres::{Client, NoTls};

/// A temporary schema and its connection settings.
pub(crate) struct Schema {
    /// The value of `store.url`.
    pub(crate) url: String,
    client: Client,
    name: String,
}

impl Schema {
    pub(crate) async fn create(server: &str) -> io::Result<Self> {
        let (client, connection) = tokio_postgres::connect(server, NoTls)
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(connection);
        let name = format!("bench_{}", std::process::id());
        let and = if server.contains('?') { '&' } else { '?' };
        let schema = Self {
            url: format!("{server}{and}options=-csearch_path%3D{name}"),
            client,
            name,
        };
        let name = &schema.name;
        schema
            .run(&format!("CREATE SCHEMA {name}; SET search_path = {name}"))
            .await?;
        Ok(schema)
    }

    /// Copies the only key of a new ledger, as `keys::multiply` does for `SQLite`.
    pub(super) async fn multiply(&self, key_id: &str, count: usize) -> io::Result<()> {
        let columns = self
            .client
            .query(
                "SELECT column_name::text FROM information_schema.columns
                 WHERE table_schema = $1 AND table_name = 'keys' AND column_name <> 'n'",
                &[&self.name],
            )
            .await
            .map_err(io::Error::other)?;
        let names: Vec<String> = columns.iter().map(|row| row.get(0)).collect();
        let value = |name: &String| match name.as_str() {
            "id" => "'key_' || lpad(number::text, 16, '0')".to_owned(),
            "digest" => "sha256(('sk-tg-' || lpad(number::text, 43, '0'))::bytea)".to_owned(),
            "wallet" => "purses[1 + (number - 1) % cardinality(purses)]".to_owned(),
            _ => format!("keys.{name}"),
        };
        let values: Vec<String> = names.iter().map(value).collect();
        let copied = self
            .client
            .execute(
                &format!(
                    "INSERT INTO keys ({}) SELECT {} FROM keys,
                         (SELECT array_agg(n ORDER BY n) AS purses FROM wallets) AS all_wallets,
                         generate_series(1, {count}) AS number
                     WHERE keys.id = $1",
                    names.join(", "),
                    values.join(", ")
                ),
                &[&key_id],
            )
            .await
            .map_err(io::Error::other)?;
        if copied == count as u64 {
            self.run("ANALYZE").await
        } else {
            Err(io::Error::other("the made key is not there"))
        }
    }

    pub(crate) async fn drop(self) -> io::Result<()> {
        self.run(&format!("DROP SCHEMA {} CASCADE", self.name))
            .await
    }

    async fn run(&self, statements: &str) -> io::Result<()> {
        self.client
            .batch_execute(statements)
            .await
            .map_err(io::Error::other)
    }
}
