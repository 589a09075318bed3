//! Classifies database errors.

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// The kind of an error, which decides how a failed transaction is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Another connection holds the lock.
    Locked,
    DiskFull,
    /// A problem of the disk, the memory or the file. The same commands may succeed later.
    Environment,
    /// A problem of the commands or the stored rows. The same commands would fail again.
    Permanent,
}

const VETO: i32 = rusqlite::ffi::SQLITE_CONSTRAINT_COMMITHOOK;

impl FailureKind {
    pub(crate) fn of(error: &rusqlite::Error) -> Self {
        // Tests veto commits. A veto is not caused by the commands or the rows.
        if error
            .sqlite_error()
            .is_some_and(|error| error.extended_code == VETO)
        {
            return Self::Environment;
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::DiskFull) => Self::DiskFull,
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
            ) => Self::Environment,
            _ => Self::Permanent,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(Box::new(error))
    }
}
