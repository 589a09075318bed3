//! Lists of tasks, for their owners and for operators.

use ledger::{Micro, UnixMs};

use super::ids::{KeyId, WalletId};
use super::task_id::TaskId;

/// A query for tasks, newest first. Conditions that are absent or empty match everything.
#[derive(Debug, Clone, Default)]
pub struct TaskQuery {
    pub wallet: Option<WalletId>,
    pub protocol: Option<Box<str>>,
    /// States as the protocol names them. A task matches if it has any of them.
    pub statuses: Vec<String>,
    pub model: Option<Box<str>>,
    pub ids: Vec<TaskId>,
    /// The beginning of the id.
    pub id_prefix: Option<Box<str>>,
    /// The key that created the task.
    pub key: Option<KeyId>,
    /// Tasks that were created before this one: the next page.
    pub before: Option<TaskId>,
    /// Only tasks that have not ended.
    pub only_open: bool,
    /// Includes tasks that their owners have hidden.
    pub with_hidden: bool,
    pub limit: u32,
    pub offset: u32,
    /// Skips computing the total, which is expensive.
    pub uncounted: bool,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPage {
    pub tasks: Vec<TaskListed>,
    /// The number of all tasks that match. 0 if the query is `uncounted`.
    pub total: u64,
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskListed {
    pub id: TaskId,
    pub wallet: WalletId,
    /// The key that created the task.
    pub key: Option<KeyId>,
    pub protocol: Box<str>,
    pub model: Box<str>,
    /// The protocol's word for the state.
    pub status: Box<str>,
    pub progress: Option<u8>,
    pub channel: Option<Box<str>>,
    pub polls: u32,
    pub created_at: UnixMs,
    /// When the task is polled next. `None` if it has ended.
    pub next_at: Option<UnixMs>,
    pub ended_at: Option<UnixMs>,
    /// Delivery attempts so far, if there is a callback.
    pub callback_attempts: Option<u32>,
    /// `delivered` or `given_up`.
    pub callback_outcome: Option<Box<str>>,
    pub snapshot: Box<[u8]>,
    /// The charge. `None` until the task has ended.
    pub charge: Option<Micro>,
}
