//! What each protocol provides, so that the engine need not know it by name.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;

use super::media::Hosted;
use super::task::{Accepted, Bound, Cause, Outcome, Polled, Standing, Task};
use crate::failure::Failure;
use crate::profile::Profile;

/// A creation request that was read, and that no rule of its protocol refuses.
pub trait Creation: Debug + Send + Sync {
    /// The public model id.
    fn model(&self) -> &str;

    /// Where the end of the task is told.
    fn callback_url(&self) -> Option<&str>;

    /// Refuses what the model cannot do. `profile` is complete: its base has been filled in.
    fn check(&self, profile: &Profile) -> Result<(), Failure>;

    /// The most that the task can use.
    fn bound(&self, profile: &Profile) -> Bound;

    /// The request for an upstream, without anything that is ours.
    fn write(&self, to: &Addressee<'_>) -> Result<Vec<Bytes>, Failure>;

    /// What later steps are told again in [`Task::memo`].
    fn memo(&self) -> Option<String> {
        None
    }

    /// How long the task may take, where the request decides it.
    fn lifetime(&self) -> Option<Duration> {
        None
    }

    /// A task of the caller's, by our id, that this one goes on from: it is looked up among the caller's
    /// own, and the creation goes where it ran.
    fn draft(&self) -> Option<&str> {
        None
    }

    /// Refuses to go on from this task of the caller's.
    fn check_draft(&self, _found: &Draft<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

/// The task that [`Creation::draft`] names.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    pub model: &'a str,
    /// Its protocol's word for how it stands.
    pub status: &'a str,
    /// What its own [`Creation::memo`] said.
    pub memo: Option<&'a str>,
}

/// What becomes of a task that its owner deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The protocol has no deletion.
    Unknown,
    /// It is called off before it begins.
    CallOff,
    /// It goes on.
    Running,
    /// It was called off before.
    Cancelled,
    /// It has ended, and is taken out of view.
    Remove,
}

/// Whom a creation is written for.
#[derive(Debug, Clone, Copy)]
pub struct Addressee<'a> {
    /// Its name for the model.
    pub model: &'a str,
    /// Its name for the task that [`Creation::draft`] names.
    pub draft: Option<&'a str>,
}

/// What a protocol reads and shows of its tasks.
pub trait Protocol: Debug + Sync {
    /// Whether an upstream answers a creation only when the work is done: then the caller is answered
    /// before it.
    fn is_blocking(&self) -> bool {
        false
    }

    /// The answer to a creation.
    fn write_accepted(&self, task: &Task<'_>) -> Vec<u8>;

    /// A task of which no more is known than that it was asked for.
    fn write_first(&self, task: &Task<'_>) -> Standing;

    /// Reads an upstream's good answer to a creation.
    fn read_accepted(&self, body: &[u8], task: &Task<'_>) -> Accepted;

    /// Reads the answer to a poll.
    fn read_poll(&self, status: u16, body: &[u8], task: &Task<'_>) -> Polled;

    /// A task whose media are kept: `facts` and `hosted` are those of its delivery, in order; an optional
    /// medium that could not be kept is absent.
    fn write_delivered(
        &self,
        task: &Task<'_>,
        _facts: &str,
        _hosted: &[Option<Hosted>],
    ) -> Outcome {
        // Of a protocol that delivers nothing to be kept.
        self.write_failed(task, Cause::Media, "The result could not be kept.")
    }

    /// A task that failed by our own word.
    fn write_failed(&self, task: &Task<'_>, cause: Cause, message: &str) -> Outcome;

    /// A task whose time is over.
    fn write_expired(&self, task: &Task<'_>) -> Outcome;

    /// A task that its owner took back, where the protocol knows such an end.
    fn write_cancelled(&self, _task: &Task<'_>) -> Option<Outcome> {
        None
    }

    /// What becomes of a task in this state that its owner deletes.
    fn deletion(&self, _status: &str) -> Deletion {
        Deletion::Unknown
    }
}
