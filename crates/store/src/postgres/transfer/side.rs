//! A `PostgreSQL` database as one side of a transfer.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::{marker, rows};
use crate::error::OpenError;
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::connection::errors::PgError;
use crate::postgres::connection::open::live_node;
use crate::postgres::reads::verify::verify;
use crate::postgres::schema::migrations::{self, SchemaAge};
use crate::settings::Server;
use crate::transfer::TransferError;
use crate::transfer::tables::{TABLES, Table};
use crate::transfer::value::{Position, Row, Value};
use crate::verify::{Rule, VerifyReport};

/// The advisory lock for a transfer. Only one transfer at a time may write to a database.
const LOCK: &str =
    "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || ' tollgate move', 0))";
/// The maximum wait for the server to notice that an earlier transfer was killed.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);
const LOCK_WAIT_STEP: Duration = Duration::from_millis(50);

pub(crate) struct PostgresSide {
    target: Target,
    client: Client,
}

impl PostgresSide {
    /// Opens a source that no node uses. Table locks keep nodes and commands from changing the source.
    pub(crate) async fn stopped_source(server: &Server) -> Result<Self, TransferError> {
        let mut side = Self::connect(server).await?;
        let Self { target, client } = &mut side;
        if let SchemaAge::Older { found: 0, .. } = migrations::age(client, target).await? {
            let place = target.place().to_owned();
            return Err(TransferError::Missing { place });
        }
        side.refuse_live_node().await?;
        migrations::migrate(&mut side.client, &side.target).await?;
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        // The locks come before the snapshot, so that the snapshot contains everything that was written before they
        // were taken.
        let lock = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE {} IN SHARE MODE",
            names.join(", ")
        );
        let locked = side.client.batch_execute(&lock).await;
        locked.map_err(|error| side.failed(error))?;
        side.refuse_live_node().await?;
        Ok(side)
    }

    /// Opens a source that nodes continue to use, as of this moment.
    pub(crate) async fn snapshot(server: &Server) -> Result<Self, TransferError> {
        let side = Self::connect(server).await?;
        match migrations::age(&side.client, &side.target).await? {
            SchemaAge::Same => {}
            SchemaAge::Older { found: 0, .. } => {
                let place = side.place();
                return Err(TransferError::Missing { place });
            }
            SchemaAge::Older { found, known } => {
                let place = side.place();
                return Err(OpenError::OlderSchema {
                    place,
                    found,
                    known,
                }
                .into());
            }
        }
        let begun = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let begun = side.client.batch_execute(begun).await;
        begun.map_err(|error| side.failed(error))?;
        Ok(side)
    }

    /// Opens a destination, and creates or migrates its tables. Tables of an earlier version must be empty. Rows in
    /// current tables are allowed here; `Transfer::check` decides whether they belong to this transfer.
    pub(crate) async fn destination(server: &Server) -> Result<Self, TransferError> {
        let mut side = Self::connect(server).await?;
        side.take_lock().await?;
        let marked = marker::exists(&side.client).await;
        let marked = marked.map_err(|error| side.failed(error))?;
        match migrations::compare(&side.client, &side.target).await? {
            SchemaAge::Same => {}
            SchemaAge::Older { .. } if marked => {
                let place = side.place();
                return Err(TransferError::OtherSource { place });
            }
            SchemaAge::Older { found, .. } => {
                // The tables of a database in use must not be migrated.
                if found > 0 {
                    side.refuse_live_node().await?;
                    side.refuse_rows().await?;
                }
                migrations::migrate(&mut side.client, &side.target).await?;
            }
        }
        side.refuse_live_node().await?;
        Ok(side)
    }

    /// Refuses a database that contains rows. It may have an earlier version, which does not have every table.
    async fn refuse_rows(&self) -> Result<(), TransferError> {
        let mut filled = Vec::new();
        for table in TABLES {
            let name = table.name;
            let exists = format!("SELECT (to_regclass('{name}') IS NOT NULL)::int::bigint");
            let has_rows = format!("SELECT EXISTS (SELECT 1 FROM {name})::int::bigint");
            if self.number(&exists).await? > 0 && self.number(&has_rows).await? > 0 {
                filled.push(name);
            }
        }
        if filled.is_empty() {
            return Ok(());
        }
        Err(TransferError::NotEmpty {
            place: self.place(),
            tables: filled.join(", "),
        })
    }

    async fn connect(server: &Server) -> Result<Self, TransferError> {
        let target = Target::of(server)?;
        let client = target.connect(Role::Verify).await;
        let client = client.map_err(|failed| target.refused(failed))?;
        Ok(Self { target, client })
    }

    async fn take_lock(&self) -> Result<(), TransferError> {
        let begun = Instant::now();
        loop {
            let locked = async { self.client.query_one(LOCK, &[]).await?.try_get(0) }.await;
            if locked.map_err(|error| self.failed(error))? {
                return Ok(());
            }
            if begun.elapsed() > LOCK_WAIT_MAX {
                let place = self.place();
                return Err(TransferError::Busy { place });
            }
            tokio::time::sleep(LOCK_WAIT_STEP).await;
        }
    }

    pub(crate) async fn refuse_live_node(&self) -> Result<(), TransferError> {
        let live = live_node(&self.client).await;
        match live.map_err(|error| self.failed(error))? {
            None => Ok(()),
            Some(node) => Err(TransferError::Running {
                place: self.place(),
                detail: format!(
                    " (node {}; one that was killed counts as running for {} seconds more)",
                    node.name,
                    node.lease_ms.max(0).div_euclid(1_000) + 1
                ),
            }),
        }
    }

    pub(crate) fn place(&self) -> String {
        self.target.place().to_owned()
    }

    pub(crate) async fn read(
        &self,
        table: &Table,
        after: Option<&[Value]>,
        limit: usize,
    ) -> Result<Vec<Row>, TransferError> {
        let found = rows::read(&self.client, table, after, limit).await;
        found.map_err(|error| self.failed(error))
    }

    pub(crate) async fn count(&self, table: &Table) -> Result<u64, TransferError> {
        let count = format!("SELECT count(*) FROM {}", table.name);
        let count = self.number(&count).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The last epoch. It is taken from the sequence, because the rows of nodes that were swept long ago are deleted.
    pub(crate) async fn last_epoch(&self) -> Result<i64, TransferError> {
        let last = "SELECT greatest((SELECT coalesce(max(epoch), 0) FROM nodes),
                    coalesce(pg_sequence_last_value(pg_get_serial_sequence('nodes', 'epoch')::regclass), 0))";
        self.number(last).await
    }

    pub(crate) async fn orphans(&self) -> Result<u64, TransferError> {
        let orphans = "SELECT count(*) FROM holds h WHERE NOT EXISTS (SELECT 1 FROM tasks t
                       WHERE t.hold = h.id AND t.wallet = h.wallet AND t.ended_at IS NULL)";
        let count = self.number(orphans).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    pub(crate) async fn verify(&self) -> Result<VerifyReport, TransferError> {
        // Uses another connection, because this one may be in a transaction.
        let client = self.target.connect(Role::Verify).await;
        let mut client = client.map_err(|failed| self.target.refused(failed))?;
        let report = verify(&mut client, 0, &[]).await;
        let mut report = report.map_err(|error| self.failed(error))?;
        let differences = &mut report.differences;
        differences.retain(|difference| difference.rule != Rule::V6Owner);
        Ok(report)
    }

    pub(crate) async fn unfinished(&self) -> Result<Option<String>, TransferError> {
        let source = marker::source(&self.client).await;
        source.map_err(|error| self.failed(error))
    }

    pub(crate) async fn begin(&self, source: &str) -> Result<(), TransferError> {
        let marked = marker::make(&self.client, source).await;
        marked.map_err(|error| self.failed(error))
    }

    pub(crate) async fn remove_marks(&self) -> Result<(), TransferError> {
        let removed = self
            .client
            .batch_execute("DROP TABLE unfinished_move")
            .await;
        removed.map_err(|error| self.failed(error))
    }

    pub(crate) async fn position(&self, table: &Table) -> Result<Position, TransferError> {
        let position = marker::position(&self.client, table.name).await;
        position.map_err(|error| self.failed(error))
    }

    pub(crate) async fn write(
        &self,
        table: &Table,
        mut batch: Vec<Row>,
        position: &Position,
    ) -> Result<(), TransferError> {
        rows::replace_nul(table, &mut batch)?;
        let write = async {
            if table.name == "calls" {
                rows::prepare_days(&self.client, &batch).await?;
            }
            self.client.batch_execute("BEGIN").await?;
            rows::copy(&self.client, table, &batch).await?;
            marker::set_position(&self.client, table.name, position).await?;
            self.client.batch_execute("COMMIT").await
        };
        write.await.map_err(|error| self.failed(error))
    }

    pub(crate) async fn finish(&self, last_epoch: i64) -> Result<(), TransferError> {
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        let analyze = format!("ANALYZE {}", names.join(", "));
        let finish = async {
            // Updates the tables' statistics, so that the first node gets good query plans.
            self.client.batch_execute(&analyze).await?;
            self.client.batch_execute("BEGIN").await?;
            self.set_sequences(last_epoch).await?;
            self.client
                .batch_execute("DROP TABLE unfinished_move; COMMIT")
                .await
        };
        finish.await.map_err(|error| self.failed(error))
    }

    /// Makes new rows get numbers above those that were copied.
    async fn set_sequences(&self, last_epoch: i64) -> Result<(), tokio_postgres::Error> {
        let numbered = "SELECT c.relname::text, a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
                        WHERE a.attidentity <> '' AND c.relnamespace = current_schema()::regnamespace";
        for row in self.client.query(numbered, &[]).await? {
            let (table, column): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let last = if table == "nodes" { last_epoch } else { 0 };
            // The names are those of our own tables and columns.
            let set = format!(
                "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), last)
                 FROM (SELECT greatest({last}, max({column})) AS last FROM {table}) AS numbers WHERE last > 0"
            );
            self.client.batch_execute(&set).await?;
        }
        Ok(())
    }

    async fn number(&self, sql: &str) -> Result<i64, TransferError> {
        let found = async { self.client.query_one(sql, &[]).await?.try_get(0) };
        found.await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: tokio_postgres::Error) -> TransferError {
        TransferError::Database {
            place: self.place(),
            source: Box::new(PgError::from(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::transfer::tables::{InPostgres, NOT_COPIED};

    #[tokio::test]
    async fn every_column_of_every_table_is_copied() {
        let Ok(url) = std::env::var("TOLLGATE_TEST_POSTGRES") else {
            eprintln!("not tested on PostgreSQL: run it by scripts/with-postgres");
            return;
        };
        let schema = format!("columns_{}", crate::WalletId::random()).to_lowercase();
        let outside = PostgresSide::connect(&Server::at(&url)).await.unwrap();
        let create = format!("CREATE SCHEMA {schema}");
        outside.client.batch_execute(&create).await.unwrap();
        let server = Server::at(format!("{url}&options=-csearch_path%3D{schema}"));
        let side = PostgresSide::destination(&server).await.unwrap();
        // The tables of the journal's days are partitions of its main table, so they are left out.
        let columns = "SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
                AND c.relnamespace = current_schema()::regnamespace AND c.relname <> ALL ($1)";
        let found = side.client.query(columns, &[&NOT_COPIED]).await.unwrap();
        let found: BTreeSet<String> = found.iter().map(|row| row.get(0)).collect();
        let copied = TABLES.iter().flat_map(|table| {
            let columns = table.columns.iter();
            let columns = columns.filter(|it| !matches!(it.postgres, InPostgres::Computed(_)));
            columns.map(|column| format!("{}.{}", table.name, column.name))
        });
        let copied: BTreeSet<String> = copied.collect();
        let drop = format!("DROP SCHEMA {schema} CASCADE");
        outside.client.batch_execute(&drop).await.unwrap();
        assert_eq!(found, copied, "transfer/tables lists every column");
    }
}
