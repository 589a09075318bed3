//! Implements the traits through which the engine uses this protocol.

use bytes::Bytes;

use super::request::Request;
use super::{report, snapshot, wire};
use crate::failure::Failure;
use crate::profile::Profile;
use crate::video::protocol::{CreationRequest, CreationTarget, Protocol};
use crate::video::task::{
    Cause, CreationResult, Outcome, PollResult, RunningState, Task, UsageBound,
};

/// The video-A protocol, whose videos stay at the upstream.
#[derive(Debug)]
pub struct VideoA;

impl Protocol for VideoA {
    fn write_accepted(&self, task: &Task<'_>) -> Vec<u8> {
        snapshot::write_accepted(task.id)
    }

    fn write_first(&self, task: &Task<'_>) -> RunningState {
        snapshot::write_pending(task, 0)
    }

    fn read_creation(&self, body: &[u8], _task: &Task<'_>) -> CreationResult {
        wire::read_creation(body).map_or(CreationResult::Unclear, CreationResult::Follow)
    }

    fn read_poll(&self, status: u16, body: &[u8], task: &Task<'_>) -> PollResult {
        report::read_poll(status, body, task)
    }

    fn write_failed(&self, task: &Task<'_>, cause: Cause, message: &str) -> Outcome {
        let code = match cause {
            Cause::Refused => "invalid_argument",
            Cause::Overloaded
            | Cause::Unreachable
            | Cause::Upstream
            | Cause::Ambiguous
            | Cause::Gone
            | Cause::Media => "internal_error",
        };
        snapshot::write_failed(task, code, message)
    }

    fn write_expired(&self, task: &Task<'_>) -> Outcome {
        snapshot::write_expired(task)
    }
}

impl CreationRequest for Request {
    fn model(&self) -> &str {
        &self.model
    }

    fn callback_url(&self) -> Option<&str> {
        self.callback_url.as_deref()
    }

    fn check(&self, profile: &Profile) -> Result<(), Failure> {
        self.check_profile(profile)
    }

    fn bound(&self, profile: &Profile) -> UsageBound {
        UsageBound {
            seconds: self.seconds_max(profile),
            resolution: self.resolution().map(str::to_owned),
            ..UsageBound::default()
        }
    }

    fn write(&self, to: &CreationTarget<'_>) -> Result<Vec<Bytes>, Failure> {
        self.write_for(to.model)
    }
}
