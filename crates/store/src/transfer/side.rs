//! One side of a transfer: a database that rows are read from or written to.

use std::path::Path;
use std::time::Duration;

use super::error::TransferError;
use super::tables::Table;
use super::value::{Position, Row, Value};
use crate::postgres::PostgresSide;
use crate::settings::{Location, Server, Settings};
use crate::sqlite::SqliteSide;
use crate::verify::VerifyReport;

/// A database of either kind.
pub(crate) enum Side {
    Sqlite(Box<SqliteSide>),
    Postgres(Box<PostgresSide>),
}

/// Calls an operation of the database, whichever it is. Those of `PostgreSQL` are awaited.
macro_rules! on {
    ($side:expr, $name:ident($($argument:expr),*)) => {
        match $side {
            Side::Sqlite(side) => side.$name($($argument),*),
            Side::Postgres(side) => side.$name($($argument),*).await,
        }
    };
}

impl Side {
    /// A source that nobody uses. Nobody can change it until this value is dropped.
    pub(crate) async fn stopped(settings: &Settings) -> Result<Self, TransferError> {
        match &settings.location {
            Location::File(path) => {
                let side = SqliteSide::stopped(path, settings.lock_wait_max)?;
                Ok(Self::Sqlite(Box::new(side)))
            }
            Location::Server(server) => {
                let side = PostgresSide::stopped(server).await?;
                Ok(Self::Postgres(Box::new(side)))
            }
        }
    }

    /// A destination with the tables of this program, locked against other transfers.
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

    /// A source that nodes continue to use, as of this moment.
    pub(crate) async fn snapshot(server: &Server) -> Result<Self, TransferError> {
        let side = PostgresSide::snapshot(server).await?;
        Ok(Self::Postgres(Box::new(side)))
    }

    /// The files of a backup, which are only read.
    pub(crate) fn backup(database: &Path) -> Result<Self, TransferError> {
        Ok(Self::Sqlite(Box::new(SqliteSide::read_only(database)?)))
    }

    /// Whether the files of a backup have the schema of this program.
    pub(crate) fn is_current(database: &Path) -> Result<bool, TransferError> {
        SqliteSide::is_current(database)
    }

    /// Migrates files of an earlier version and opens them.
    pub(crate) fn upgraded(database: &Path) -> Result<Self, TransferError> {
        let side = SqliteSide::stopped(database, Duration::ZERO)?;
        Ok(Self::Sqlite(Box::new(side)))
    }

    /// The database, for messages.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Sqlite(side) => side.place(),
            Self::Postgres(side) => side.place(),
        }
    }

    /// The next rows by key.
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

    /// The last epoch that has begun. Hold ids begin with the epoch, so no epoch may be used twice.
    pub(crate) async fn last_epoch(&self) -> Result<i64, TransferError> {
        on!(self, last_epoch())
    }

    /// The number of open holds that belong to no task. The next start closes them.
    pub(crate) async fn orphans(&self) -> Result<u64, TransferError> {
        on!(self, orphans())
    }

    /// Verifies the ledger. The owners of open holds are not checked, because the next start closes the holds.
    pub(crate) async fn verify(&self) -> Result<VerifyReport, TransferError> {
        on!(self, verify())
    }

    /// The source of the unfinished transfer to this database, if there is one.
    pub(crate) async fn unfinished(&self) -> Result<Option<String>, TransferError> {
        on!(self, unfinished())
    }

    /// Marks the database as the destination of a transfer, so that nobody opens it.
    pub(crate) async fn begin(&mut self, source: &str) -> Result<(), TransferError> {
        on!(self, begin(source))
    }

    /// Removes the mark of a transfer that has copied nothing.
    pub(crate) async fn remove_marks(&mut self) -> Result<(), TransferError> {
        on!(self, remove_marks())
    }

    /// Refuses a database that a node uses. For `SQLite`, the lock of this side keeps servers out.
    pub(crate) async fn refuse_live_node(&self) -> Result<(), TransferError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(side) => side.refuse_live_node().await,
        }
    }

    /// How far a table has been copied to here.
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

    /// Ends the transfer: new rows get numbers after those that were copied, and the mark is removed.
    pub(crate) async fn finish(&mut self, last_epoch: i64) -> Result<(), TransferError> {
        on!(self, finish(last_epoch))
    }
}
