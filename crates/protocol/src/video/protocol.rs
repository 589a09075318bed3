//! The traits that each protocol implements, so that the engine does not depend on a particular protocol.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;

use super::media::HostedMedium;
use super::task::{Cause, CreationResult, Outcome, PollResult, RunningState, Task, UsageBound};
use crate::failure::Failure;
use crate::profile::Profile;
use crate::tool::Tools;

/// A creation request that was read and that obeys the rules of its protocol.
pub trait CreationRequest: Debug + Send + Sync {
    /// The public model id.
    fn model(&self) -> &str;

    /// The URL that is called when the task ends.
    fn callback_url(&self) -> Option<&str>;

    /// Refuses what the model does not support. The caller has added the values of the base to
    /// `profile`.
    fn check(&self, profile: &Profile) -> Result<(), Failure>;

    /// The upper bound for the usage of the task.
    fn bound(&self, profile: &Profile) -> UsageBound;

    /// The request for an upstream, without members that are for the gateway.
    fn write(&self, to: &CreationTarget<'_>) -> Result<Vec<Bytes>, Failure>;

    /// Data for later steps, which receive it as [`Task::memo`].
    fn memo(&self) -> Option<String> {
        None
    }

    /// The maximum duration of the task, if the request sets it.
    fn lifetime(&self) -> Option<Duration> {
        None
    }

    /// Built-in tools that the request offers.
    fn tools(&self) -> Tools {
        Tools::default()
    }

    /// Our id of an earlier task of the client that this task continues. The engine finds it among
    /// the tasks of the client, and sends the creation to the same channel.
    fn draft(&self) -> Option<&str> {
        None
    }

    /// Refuses a draft that this task cannot continue.
    fn check_draft(&self, _found: &Draft<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

/// The task that [`CreationRequest::draft`] refers to.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    pub model: &'a str,
    /// The status of the task, as its protocol names it.
    pub status: &'a str,
    /// The value of the task's [`CreationRequest::memo`].
    pub memo: Option<&'a str>,
}

/// The effect of a deletion by the task's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The protocol has no deletion.
    Unknown,
    /// The task is cancelled before it starts.
    Cancel,
    /// The task is running, and continues.
    Running,
    /// The task was cancelled before.
    Cancelled,
    /// The task has ended, and the deletion hides it.
    Remove,
}

/// The upstream that a creation is written for.
#[derive(Debug, Clone, Copy)]
pub struct CreationTarget<'a> {
    /// The upstream's name of the model.
    pub model: &'a str,
    /// The upstream's id of the task that [`CreationRequest::draft`] refers to.
    pub draft: Option<&'a str>,
}

/// Reads the upstream's answers about tasks and writes the answers for clients.
pub trait Protocol: Debug + Sync {
    /// Whether an upstream answers a creation only when the work is done. If so, the client is
    /// answered before the upstream is called.
    fn is_blocking(&self) -> bool {
        false
    }

    /// The answer to a creation.
    fn write_accepted(&self, task: &Task<'_>) -> Vec<u8>;

    /// The first snapshot of a task, when only its creation request is known.
    fn write_first(&self, task: &Task<'_>) -> RunningState;

    /// Reads an upstream's successful answer to a creation.
    fn read_creation(&self, body: &[u8], task: &Task<'_>) -> CreationResult;

    /// Reads the answer to a poll.
    fn read_poll(&self, status: u16, body: &[u8], task: &Task<'_>) -> PollResult;

    /// The end of a task whose media have been copied. `facts` come from its delivery. `hosted` has the media
    /// of the delivery in order, with `None` for an optional medium that could not be copied.
    fn write_delivered(
        &self,
        task: &Task<'_>,
        _facts: &str,
        _hosted: &[Option<HostedMedium>],
    ) -> Outcome {
        // For protocols without media to copy.
        self.write_failed(task, Cause::Media, "The result could not be kept.")
    }

    /// A task that failed by a decision of the gateway.
    fn write_failed(&self, task: &Task<'_>, cause: Cause, message: &str) -> Outcome;

    /// A task that has expired.
    fn write_expired(&self, task: &Task<'_>) -> Outcome;

    /// A task that its owner cancelled, if the protocol has such an end.
    fn write_cancelled(&self, _task: &Task<'_>) -> Option<Outcome> {
        None
    }

    /// The effect of a deletion by the owner of a task in this state.
    fn deletion(&self, _status: &str) -> Deletion {
        Deletion::Unknown
    }
}
