//! What kind of failure the database reports.

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// Whose fault a failed transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Another connection holds the lock.
    Locked,
    /// The disk is full.
    Full,
    /// The disk, the memory or the file: the same commands may succeed later.
    Outside,
    /// The commands or the stored rows: the same commands would fail again.
    Inside,
}

const VETO: i32 = rusqlite::ffi::SQLITE_CONSTRAINT_COMMITHOOK;

impl Trouble {
    pub(crate) fn of(error: &rusqlite::Error) -> Self {
        // A veto on the commit says nothing about the rows.
        if error
            .sqlite_error()
            .is_some_and(|error| error.extended_code == VETO)
        {
            return Self::Outside;
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::OutOfMemory
                | ErrorCode::ReadOnly
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::PermissionDenied
                | ErrorCode::NoLargeFileSupport
                | ErrorCode::OperationInterrupted
                | ErrorCode::OperationAborted,
            ) => Self::Outside,
            _ => Self::Inside,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(Box::new(error))
    }
}
