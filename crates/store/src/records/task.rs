//! Tasks: asynchronous work that outlives the call that created it, and its callbacks.
//!
//! The row of a task is written with its hold before the upstream is called. Settlement, final snapshot and callback
//! are written in one transaction (T1, T4). A worker claims a task with a fencing number, and each of its writes names
//! that number (T7). Future times are given as delays, because with several nodes only the database's clock counts.

use std::time::Duration;

use ledger::{Meter, Rates, UnixMs};

use super::call::{Admit, End};
use super::ids::{HoldId, KeyId, PriceVersion, WalletId};
use super::task_id::TaskId;

/// A request to admit a task.
#[derive(Debug, Clone)]
pub struct NewTask {
    pub id: TaskId,
    /// The hold belongs to the task, not to this process.
    pub admit: Admit,
    /// The configured name of the protocol by which the task was created.
    pub protocol: Box<str>,
    /// The endpoint of the creation, as a path template.
    pub endpoint: Box<str>,
    /// The public model.
    pub model: Box<str>,
    /// The price version of its hold and settlement.
    pub price_version: PriceVersion,
    /// The usage that the hold covers.
    pub bound: Box<Meter>,
    /// Data that the protocol needs in later steps.
    pub memo: Option<Box<str>>,
    pub callback_url: Option<Box<str>>,
    /// The state that lookups show at first.
    pub running_state: RunningTaskState,
    /// How long the creation may take. After that, it is unknown whether the upstream has the task.
    pub lease: Duration,
    /// After this time the task ends, even if the upstream still works on it.
    pub lifetime: Duration,
}

/// The state of a task that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTaskState {
    /// The protocol's word for the state.
    pub status: Box<str>,
    /// Per cent, if the protocol reports it.
    pub progress: Option<u8>,
    /// The bytes that a lookup shows.
    pub snapshot: Box<[u8]>,
}

/// A task whose row and hold are durable.
#[derive(Debug, Clone, Copy)]
#[must_use = "a task that is opened is accepted, refused or ended"]
pub struct OpenedTask {
    pub claim: Claim,
    pub hold: HoldId,
    /// The remaining rate limits of the key, for the response headers.
    pub rates: Rates,
}

/// The right to write to a task, until another worker claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub task: TaskId,
    /// Grows with each claim.
    pub fence: i64,
}

/// An upstream has accepted a task.
#[derive(Debug, Clone)]
pub struct TaskAccepted {
    pub claim: Claim,
    pub upstream: TaskUpstream,
    /// The delay until the first poll.
    pub next_in: Duration,
    pub now: UnixMs,
}

/// Extends the claim of a worker that needs more time, and stores its results so far.
#[derive(Debug, Clone)]
pub struct ClaimRenewal {
    pub claim: Claim,
    /// How long the claim lasts, counted from now.
    pub lease: Duration,
    /// The upstream of the task. `None` keeps the stored value.
    pub upstream: Option<TaskUpstream>,
    /// The result that the upstream delivered, encoded by the engine. `None` keeps the stored value.
    pub delivery: Option<Box<str>>,
    pub now: UnixMs,
}

impl ClaimRenewal {
    /// Only extends the claim.
    pub fn claim(claim: Claim, lease: Duration, now: UnixMs) -> Self {
        Self {
            claim,
            lease,
            upstream: None,
            delivery: None,
            now,
        }
    }
}

/// The result of a poll of a task that has not ended. The report ends the claim.
#[derive(Debug, Clone)]
pub struct TaskPollReport {
    pub claim: Claim,
    /// The state that lookups show from now on. `None` keeps the stored value.
    pub running_state: Option<RunningTaskState>,
    pub next_in: Duration,
    /// Whether the upstream answered that it has no such task.
    pub missing: bool,
    pub now: UnixMs,
}

/// The end of a task: settlement, snapshot and callback in one transaction.
#[derive(Debug, Clone)]
pub struct TaskEnd {
    pub claim: Claim,
    /// The protocol's word for the final state.
    pub status: Box<str>,
    pub end: End,
    pub snapshot: Box<[u8]>,
    pub now: UnixMs,
}

/// A task that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    pub claim: Claim,
    pub wallet: WalletId,
    /// The key that created the task. `None` if it has been deleted.
    pub key: Option<KeyId>,
    pub hold: HoldId,
    pub protocol: Box<str>,
    /// The endpoint of the creation. Empty if an earlier version wrote the row.
    pub endpoint: Box<str>,
    pub model: Box<str>,
    pub price_version: PriceVersion,
    pub bound: Box<Meter>,
    pub memo: Option<Box<str>>,
    /// The upstream of the task. `None` if its creator never stored it.
    pub upstream: Option<TaskUpstream>,
    /// The result that the upstream delivered, kept while its media are copied.
    pub delivery: Option<Box<str>>,
    /// The number of polls so far.
    pub polls: u32,
    /// The number of consecutive polls to which the upstream answered that it has no such task, and since when.
    pub missing: u32,
    pub missing_since: Option<UnixMs>,
    pub created_at: UnixMs,
    pub expires_at: UnixMs,
    /// When the task was claimed, by the same clock as its other times.
    pub claimed_at: UnixMs,
}

/// The upstream of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskUpstream {
    /// Its channel, which never changes (T8).
    pub channel: Box<str>,
    pub model: Box<str>,
    /// The upstream's id of the task, which no caller sees. Empty if the upstream answered the creation with the
    /// result.
    pub id: Box<str>,
}

/// A task as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    pub protocol: Box<str>,
    pub model: Box<str>,
    pub memo: Option<Box<str>>,
    pub upstream: Option<TaskUpstream>,
    /// The protocol's word for the state.
    pub status: Box<str>,
    pub is_ended: bool,
    /// The bytes that are shown.
    pub snapshot: Box<[u8]>,
}

/// A callback that is due. The attempt is already counted (C1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRow {
    /// The fence of the claim is the number of the attempt, from 1.
    pub claim: Claim,
    pub wallet: WalletId,
    pub url: Box<str>,
    pub body: Box<[u8]>,
}

/// The outcome of a callback attempt.
#[derive(Debug, Clone, Copy)]
pub struct CallbackReport {
    pub claim: Claim,
    pub outcome: CallbackOutcome,
    pub now: UnixMs,
}

/// The state of a callback after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackOutcome {
    Delivered,
    /// The attempt was not made and does not count.
    NotTried {
        after: Duration,
    },
    /// The callback will be retried.
    Again {
        after: Duration,
    },
    /// All attempts were used up.
    GivenUp,
}
