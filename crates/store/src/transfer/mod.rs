//! Transfers a whole store: `move` to another database, `backup` to a folder, `restore` from one.
//!
//! `tables` lists every table with its columns once, for both databases. A database is a [`Side`](side::Side), which
//! reads and writes rows of these tables in the order of their keys. `copy` copies them in batches. The rows of a batch
//! and the progress of the copy are written in one transaction, so an interrupted copy continues where it stopped. The
//! destination cannot be opened until it is complete and verified (`docs/decisions/064`).

mod backup;
mod contents;
mod copy;
mod error;
mod files;
mod manifest;
mod media_files;
mod move_store;
mod opened_backup;
mod report;
mod restore;
pub(crate) mod side;
pub(crate) mod tables;
pub(crate) mod value;

pub use backup::backup_store;
pub use error::TransferError;
pub use move_store::move_store;
pub use report::{BackupReport, Progress, TransferReport, TransferTotals};
pub use restore::restore_store;
