//! One side of a transfer: a database from which rows are read or to which they are written.

use std::path::Path;
use std::time::Duration;

use super::error::TransferError;
use super::tables::Table;
use super::value::{Position, Row, Value};
use crate::postgres::PostgresSide;
use crate::settings::{Location, Server, Settings};
use crate::sqlite::SqliteSide;
use crate::verify::VerifyReport;

pub(crate) enum Side {
    Sqlite(Box<SqliteSide>),
    Postgres(Box<PostgresSide>),
}

/// Calls the method of this name on the side's database. Methods of `PostgreSQL` are awaited.
macro_rules! on {
    ($side:expr, $name:ident($($argument:expr),*)) => {
        match $side {
            Side::Sqlite(side) => side.$name($($argument),*),
            Side::Postgres(side) => side.$name($($argument),*).await,
        }
    };
}

impl Side {
    /// Opens a source that is not in use. No process can change it until this value is dropped.
    pub(crate) async fn stopped_source(settings: &Settings) -> Result<Self, TransferError> {
        match &settings.location {
            Location::File(path) => {
                let side = SqliteSide::stopped_source(path, settings.lock_wait_max)?;
                Ok(Self::Sqlite(Box::new(side)))
            }
            Location::Server(server) => {
                let side = PostgresSide::stopped_source(server).await?;
                Ok(Self::Postgres(Box::new(side)))
            }
        }
    }

    /// Opens a destination with the tables of this program, locked against other transfers.
    pub(crate) async fn destination(settings: &Settings) -> Result<Self, TransferError> {
        match &settings.location {
            Location::File(path) => {
                let side = SqliteSide::destination(path, settings.lock_wait_max)?;
                Ok(Self::Sqlite(Box::new(side)))
            }
            Location::Server(server) => {
                let side = PostgresSide::destination(server).await?;
                Ok(Self::Postgres(Box::new(side)))
            }
        }
    }

    /// Opens a source that nodes continue to use, as of this moment.
    pub(crate) async fn snapshot(server: &Server) -> Result<Self, TransferError> {
        let side = PostgresSide::snapshot(server).await?;
        Ok(Self::Postgres(Box::new(side)))
    }

    /// Opens the files of a backup for reading only.
    pub(crate) fn backup(database: &Path) -> Result<Self, TransferError> {
        Ok(Self::Sqlite(Box::new(SqliteSide::read_only(database)?)))
    }

    /// Whether the files of a backup have the schema of this program.
    pub(crate) fn is_current(database: &Path) -> Result<bool, TransferError> {
        SqliteSide::is_current(database)
    }

    /// Migrates files with an earlier schema and opens them.
    pub(crate) fn upgraded(database: &Path) -> Result<Self, TransferError> {
        let side = SqliteSide::stopped_source(database, Duration::ZERO)?;
        Ok(Self::Sqlite(Box::new(side)))
    }

    /// The location of the database, for messages.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Sqlite(side) => side.place(),
            Self::Postgres(side) => side.place(),
        }
    }

    /// Reads the next rows of a table, ordered by its key.
    pub(crate) async fn read(
        &self,
        table: &Table,
        after: Option<&[Value]>,
        limit: usize,
    ) -> Result<Vec<Row>, TransferError> {
        on!(self, read(table, after, limit))
    }

    pub(crate) async fn count(&self, table: &Table) -> Result<u64, TransferError> {
        on!(self, count(table))
    }

    /// The last epoch that has begun. Hold ids contain the epoch, so no epoch may be used twice.
    pub(crate) async fn last_epoch(&self) -> Result<i64, TransferError> {
        on!(self, last_epoch())
    }

    /// The number of open holds that belong to no task. The next start closes them.
    pub(crate) async fn orphans(&self) -> Result<u64, TransferError> {
        on!(self, orphans())
    }

    /// Verifies the ledger. The owners of open holds are not checked, because the next start closes these holds.
    pub(crate) async fn verify(&self) -> Result<VerifyReport, TransferError> {
        on!(self, verify())
    }

    /// The source of the unfinished transfer to this database, if there is one.
    pub(crate) async fn unfinished(&self) -> Result<Option<String>, TransferError> {
        on!(self, unfinished())
    }

    /// Marks the database as the destination of a transfer, so that it cannot be opened.
    pub(crate) async fn begin(&mut self, source: &str) -> Result<(), TransferError> {
        on!(self, begin(source))
    }

    /// Removes the mark of a transfer that has copied nothing.
    pub(crate) async fn remove_marks(&mut self) -> Result<(), TransferError> {
        on!(self, remove_marks())
    }

    /// Refuses a database that a node uses. For `SQLite`, the lock of this side already keeps servers out.
    pub(crate) async fn refuse_live_node(&self) -> Result<(), TransferError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(side) => side.refuse_live_node().await,
        }
    }

    pub(crate) async fn position(&self, table: &Table) -> Result<Position, TransferError> {
        on!(self, position(table))
    }

    /// Writes rows and the progress of the copy, in one transaction.
    pub(crate) async fn write(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
        position: &Position,
    ) -> Result<(), TransferError> {
        on!(self, write(table, rows, position))
    }

    /// Ends the transfer: makes new rows get numbers above those that were copied, and removes the mark.
    pub(crate) async fn finish(&mut self, last_epoch: i64) -> Result<(), TransferError> {
        on!(self, finish(last_epoch))
    }
}
