//! Tasks: asynchronous work that outlives the call that asked for it, and its callbacks.
//!
//! A task's row is written with its hold before the upstream hears of it; its end is one transaction of
//! settlement, snapshot and callback (T1, T4). Whoever acts on a task holds a claim with a
//! fencing number, and every write names that number (T7). Times to come are given as delays: what the
//! time is, the database says where there are several nodes.

use std::time::Duration;

use ledger::{Meter, Rates, UnixMs};

use super::call::{Admit, End};
use super::ids::{HoldId, PriceVersion, WalletId};
use super::task_id::TaskId;

/// A task that asks to be admitted.
#[derive(Debug, Clone)]
pub struct NewTask {
    pub id: TaskId,
    /// Its hold belongs to the task and not to this process.
    pub admit: Admit,
    /// The protocol it was asked for in, by its configured name.
    pub protocol: Box<str>,
    /// The public model.
    pub model: Box<str>,
    /// The price it is held and settled at.
    pub price_version: PriceVersion,
    /// What is held for.
    pub bound: Box<Meter>,
    /// What the protocol wants to know again at later steps.
    pub memo: Option<Box<str>>,
    pub callback_url: Option<Box<str>>,
    /// What a look-up shows from the beginning.
    pub standing: TaskStanding,
    /// How long its creator may take to have it accepted; afterwards nobody knows what became of it.
    pub lease: Duration,
    /// After this it ends, whatever the upstream says.
    pub lifetime: Duration,
}

/// How a task stands that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStanding {
    /// The protocol's word for it.
    pub status: Box<str>,
    /// Per cent, where the protocol tells it.
    pub progress: Option<u8>,
    /// What a look-up shows.
    pub snapshot: Box<[u8]>,
}

/// A task whose row and hold are durable.
#[derive(Debug, Clone, Copy)]
#[must_use = "a task that is opened is accepted, refused or ended"]
pub struct OpenedTask {
    pub claim: Claim,
    pub hold: HoldId,
    /// What is left of the key's rates, for the response headers.
    pub rates: Rates,
}

/// The right to write to a task, as long as nobody else has claimed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub task: TaskId,
    /// Grows with each claim.
    pub fence: i64,
}

/// The upstream has taken a task.
#[derive(Debug, Clone)]
pub struct TaskAccepted {
    pub claim: Claim,
    pub upstream: TaskUpstream,
    /// The first poll.
    pub next_in: Duration,
    pub now: UnixMs,
}

/// Somebody is at a task for longer than his claim lasts; what he has learnt so far is kept.
#[derive(Debug, Clone)]
pub struct TaskKept {
    pub claim: Claim,
    /// How long the claim lasts from now on.
    pub lease: Duration,
    /// Where it runs, or ran; as before when absent.
    pub upstream: Option<TaskUpstream>,
    /// What the upstream has delivered, in the engine's own words; as before when absent.
    pub delivery: Option<Box<str>>,
    pub now: UnixMs,
}

impl TaskKept {
    /// Nothing but a longer claim.
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

/// What a poll has found of a task that goes on. The claim ends with it.
#[derive(Debug, Clone)]
pub struct TaskNote {
    pub claim: Claim,
    /// What a look-up shows from now on; as before when absent.
    pub standing: Option<TaskStanding>,
    pub next_in: Duration,
    /// Whether the upstream says that it knows no such task.
    pub missing: bool,
    pub now: UnixMs,
}

/// The end of a task: settlement, snapshot and callback in one transaction.
#[derive(Debug, Clone)]
pub struct TaskEnd {
    pub claim: Claim,
    /// The protocol's word for how it ended.
    pub status: Box<str>,
    pub end: End,
    pub snapshot: Box<[u8]>,
    pub now: UnixMs,
}

/// A task that goes on.
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
    /// Where it runs; nothing when its creator was never heard of again.
    pub upstream: Option<TaskUpstream>,
    /// What the upstream has delivered, while its media are copied.
    pub delivery: Option<Box<str>>,
    /// How often it was polled.
    pub polls: u32,
    /// How often in a row the upstream has not known it, and since when.
    pub missing: u32,
    pub missing_since: Option<UnixMs>,
    pub created_at: UnixMs,
    pub expires_at: UnixMs,
    /// When it was claimed, by the clock that its times are measured by.
    pub claimed_at: UnixMs,
}

/// Where a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskUpstream {
    /// The channel that has it; it is asked there for ever after (T8).
    pub channel: Box<str>,
    pub model: Box<str>,
    /// The upstream's name for it, which no caller is shown; empty when it answered with the result.
    pub id: Box<str>,
}

/// A task as its owner looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    pub protocol: Box<str>,
    pub model: Box<str>,
    pub memo: Option<Box<str>>,
    pub upstream: Option<TaskUpstream>,
    /// The protocol's word for how it stands.
    pub status: Box<str>,
    pub is_ended: bool,
    /// The bytes that are shown.
    pub snapshot: Box<[u8]>,
}

/// A callback whose turn has come; its attempt is counted already (C1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRow {
    /// Its fence is the number of the attempt, from 1.
    pub claim: Claim,
    pub wallet: WalletId,
    pub url: Box<str>,
    pub body: Box<[u8]>,
}

/// How an attempt at a callback went.
#[derive(Debug, Clone, Copy)]
pub struct CallbackNote {
    pub claim: Claim,
    pub outcome: CallbackOutcome,
    pub now: UnixMs,
}

/// What becomes of a callback after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackOutcome {
    Delivered,
    /// Its turn has not come: the attempt does not count.
    NotTried {
        after: Duration,
    },
    /// It is tried again.
    Again {
        after: Duration,
    },
    /// It has been tried often enough.
    GivenUp,
}
