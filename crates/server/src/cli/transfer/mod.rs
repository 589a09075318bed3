//! `tollgate move`, `backup` and `restore`: transfer the whole store.

mod backup;
mod database_args;
mod progress;
mod relocate;
mod report;
mod restore;

pub(super) use backup::{Backup, run as run_backup};
pub(super) use relocate::{Move, run as run_move};
pub(super) use restore::{Restore, run as run_restore};
