//! Tasks: asynchronous work that outlives the call that created it, and its callbacks.
//!
//! The row of a task is written with its hold before the upstream is called. Its end is one transaction of
//! settlement, snapshot and callback (T1, T4). Whoever acts on a task holds a claim with a fencing number, and
//! every write names that number (T7). Future times are given as delays, because with several nodes only the
//! database's clock counts.

use std::time::Duration;

use ledger::{Meter, Rates, UnixMs};

use super::call::{Admit, End};
use super::ids::{HoldId, PriceVersion, WalletId};
use super::task_id::TaskId;

/// A request to admit a task.
#[derive(Debug, Clone)]
pub struct NewTask {
    pub id: TaskId,
    /// Its hold belongs to the task, not to this process.
    pub admit: Admit,
    /// The protocol of its creation, by its configured name.
    pub protocol: Box<str>,
    /// The public model.
    pub model: Box<str>,
    /// The price of its hold and settlement.
    pub price_version: PriceVersion,
    /// The usage that is held for.
    pub bound: Box<Meter>,
    /// What the protocol needs at later steps.
    pub memo: Option<Box<str>>,
    pub callback_url: Option<Box<str>>,
    /// What a lookup shows at first.
    pub standing: TaskStanding,
    /// How long its creator may take to have it accepted. After that, its fate is unknown.
    pub lease: Duration,
    /// After this time it ends, whatever the upstream says.
    pub lifetime: Duration,
}

/// The state of a task that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStanding {
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
    /// What is left of the key's rate limits, for the response headers.
    pub rates: Rates,
}

/// The right to write to a task, until somebody else claims it.
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
    /// The first poll.
    pub next_in: Duration,
    pub now: UnixMs,
}

/// Extends the claim of a worker that needs longer, and stores what it has learned so far.
#[derive(Debug, Clone)]
pub struct TaskKept {
    pub claim: Claim,
    /// How long the claim lasts from now on.
    pub lease: Duration,
    /// Where it runs or ran. `None` keeps the stored value.
    pub upstream: Option<TaskUpstream>,
    /// What the upstream has delivered, encoded by the engine. `None` keeps the stored value.
    pub delivery: Option<Box<str>>,
    pub now: UnixMs,
}

impl TaskKept {
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

/// The result of a poll of a task that has not ended. It ends the claim.
#[derive(Debug, Clone)]
pub struct TaskNote {
    pub claim: Claim,
    /// What a lookup shows from now on. `None` keeps the stored value.
    pub standing: Option<TaskStanding>,
    pub next_in: Duration,
    /// Whether the upstream says that it has no such task.
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
    pub hold: HoldId,
    pub protocol: Box<str>,
    pub model: Box<str>,
    pub price_version: PriceVersion,
    pub bound: Box<Meter>,
    pub memo: Option<Box<str>>,
    /// Where it runs. `None` if its creator never reported it.
    pub upstream: Option<TaskUpstream>,
    /// What the upstream has delivered, while its media are copied.
    pub delivery: Option<Box<str>>,
    /// How often it was polled.
    pub polls: u32,
    /// How many times in a row the upstream has not known it, and since when.
    pub missing: u32,
    pub missing_since: Option<UnixMs>,
    pub created_at: UnixMs,
    pub expires_at: UnixMs,
    /// When it was claimed, by the clock of its other times.
    pub claimed_at: UnixMs,
}

/// Where a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskUpstream {
    /// Its channel, which never changes (T8).
    pub channel: Box<str>,
    pub model: Box<str>,
    /// The upstream's id of the task, which no caller sees. Empty if the upstream answered with the result.
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
    /// Its fence is the number of the attempt, from 1.
    pub claim: Claim,
    pub wallet: WalletId,
    pub url: Box<str>,
    pub body: Box<[u8]>,
}

/// The outcome of a callback attempt.
#[derive(Debug, Clone, Copy)]
pub struct CallbackNote {
    pub claim: Claim,
    pub outcome: CallbackOutcome,
    pub now: UnixMs,
}

/// What happens to a callback after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackOutcome {
    Delivered,
    /// The attempt was not made, and does not count.
    NotTried {
        after: Duration,
    },
    /// It will be retried.
    Again {
        after: Duration,
    },
    /// All attempts were used up.
    GivenUp,
}
