//! The ledger writer.

pub(super) mod apply;
mod batch;
pub(super) mod batch_policy;
pub(super) mod batch_writer;
pub(super) mod calls;
pub(super) mod changes;
pub(super) mod checkpointer;
pub(super) mod disk_reserve;
pub(super) mod insert;
pub(super) mod ledger;
pub(super) mod one_by_one;
pub(super) mod shared_ledger;
pub(super) mod statements;
pub(super) mod thread;
pub(super) mod writer_lock;
