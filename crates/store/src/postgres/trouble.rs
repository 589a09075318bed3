//! What kind of failure the database reports, and what to do about it.

use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Sql(#[from] tokio_postgres::Error),
    /// No answer in time; the connection is given up.
    #[error("the database did not answer in time")]
    Silent,
}

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Another transaction was in the way: the same again may succeed at once.
    Crossed,
    /// Somebody held a lock for too long.
    Locked,
    /// The connection is gone, or the server is about to go.
    Gone,
    /// The server's disk, memory or configuration: the same may succeed later.
    Outside,
    /// The commands or the stored rows: the same would fail again.
    Inside,
}

impl Failed {
    pub(super) fn trouble(&self) -> Trouble {
        let Self::Sql(error) = self else {
            return Trouble::Gone;
        };
        let Some(code) = error.code() else {
            return if error.is_closed() || is_io(error) {
                Trouble::Gone
            } else {
                Trouble::Inside
            };
        };
        if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
        {
            return Trouble::Crossed;
        }
        if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED {
            return Trouble::Locked;
        }
        match code.code().get(..2) {
            // Connection exceptions, operator intervention (shutdown, terminated), idle too long.
            Some("08" | "57" | "25") => Trouble::Gone,
            // Resources, objects not in the right state, system errors, read-only standby.
            Some("53" | "55" | "58" | "XX" | "28" | "3D") => Trouble::Outside,
            _ => Trouble::Inside,
        }
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        match failed.trouble() {
            Trouble::Gone => Self::Unavailable,
            _ => Self::Database(Box::new(failed)),
        }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Failed::from(error).into()
    }
}
