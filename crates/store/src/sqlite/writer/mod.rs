//! The ledger writer: a thread that decides commands and writes them in batches (`thread`, `batch`).
//!
//! This table lists what the writer holds in each state. A test reads the table and brings the writer into every state.
//!
//! | state | writer lock | transaction | checkpoint lock | books |
//! |---|---|---|---|---|
//! | asleep | free | none | free | writer |
//! | sharing an open batch | held | open | free | callers |
//! | waiting for the checkpointer | held | open | held by the checkpointer | callers |
//! | writing the last batch before a pause | held | open | held | writer |
//! | writing a batch while callers decide the next one | held | open | held | callers |
//! | pausing after a failed commit | free | none | free | writer |
//!
//! Each command that runs alone (`one_by_one`) is written like the last batch before a pause.
//!
//! The locks, in the order in which they are taken. Only `one_by_one` takes the checkpoint lock first, which is safe
//! because the checkpointer takes none of the others:
//!
//! | lock | protects | who takes it |
//! |---|---|---|
//! | writer lock (`writer_lock`) | the right to write, between one transaction and the next | the writer, commands beside the server |
//! | waiting lock (`writer_lock`) | nothing: it says that a process waits for the writer lock | processes that wait, the writer to look |
//! | transaction | the rows in the file | whoever holds the writer lock, and programs that do not know it |
//! | checkpoint lock | the log: it is either written or checkpointed | the writer while it writes, the checkpointer |
//! | books (`shared_ledger`) | the rows in memory | the writer, callers while the books are shared |
//!
//! The locks of the command queue, of the sync queue and of a batch's waiters are held only briefly, and never while
//! another lock is taken.

mod access;
mod alert_rules;
pub(super) mod apply;
mod audit;
mod batch;
pub(super) mod batch_policy;
pub(super) mod batch_writer;
pub(super) mod calls;
mod catalog;
pub(super) mod changes;
pub(super) mod checkpointer;
pub(super) mod disk_reserve;
mod import;
pub(super) mod insert;
mod key_changes;
pub(super) mod ledger;
pub(super) mod one_by_one;
pub(super) mod shared_ledger;
pub(super) mod statements;
pub(super) mod thread;
mod wallet_changes;
pub(super) mod writer_lock;
