//! Lists of tasks, for their owners and for operators.

use ledger::UnixMs;

use super::ids::WalletId;
use super::task_id::TaskId;

/// Which tasks are listed, the latest first. What is absent or empty does not filter.
#[derive(Debug, Clone, Default)]
pub struct TaskQuery {
    pub wallet: Option<WalletId>,
    pub protocol: Option<Box<str>>,
    /// Words of the protocol; any of them.
    pub statuses: Vec<String>,
    pub model: Option<Box<str>>,
    pub ids: Vec<TaskId>,
    /// Only those that go on.
    pub only_open: bool,
    /// Also those that their owners have removed from view.
    pub with_hidden: bool,
    pub limit: u32,
    pub offset: u32,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPage {
    pub tasks: Vec<TaskListed>,
    /// All that the filters let through.
    pub total: u64,
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskListed {
    pub id: TaskId,
    pub wallet: WalletId,
    pub protocol: Box<str>,
    pub model: Box<str>,
    /// The protocol's word for how it stands.
    pub status: Box<str>,
    pub progress: Option<u8>,
    pub channel: Option<Box<str>>,
    pub polls: u32,
    pub created_at: UnixMs,
    /// When it is looked at again; nothing when it has ended.
    pub next_at: Option<UnixMs>,
    pub ended_at: Option<UnixMs>,
    /// Deliveries so far, where a callback waits or waited.
    pub callback_attempts: Option<u32>,
    /// `delivered` or `given_up`.
    pub callback_outcome: Option<Box<str>>,
    pub snapshot: Box<[u8]>,
}
