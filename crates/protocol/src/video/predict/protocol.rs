//! Implements the traits through which the engine uses this protocol.

use bytes::Bytes;

use super::request::Request;
use super::{report, snapshot};
use crate::failure::Failure;
use crate::profile::Profile;
use crate::video::google::{code_of, used};
use crate::video::media::HostedMedium;
use crate::video::protocol::{CreationRequest, CreationTarget, Protocol};
use crate::video::task::{
    Cause, CreationResult, Outcome, PollResult, RunningState, Task, UsageBound,
};

/// The long-running predict protocol, in which a task is an operation with a name.
#[derive(Debug)]
pub struct Predict;

impl Protocol for Predict {
    fn write_accepted(&self, task: &Task<'_>) -> Vec<u8> {
        snapshot::write_accepted(task.id)
    }

    fn write_first(&self, task: &Task<'_>) -> RunningState {
        snapshot::write_running(task, None)
    }

    fn read_creation(&self, body: &[u8], _task: &Task<'_>) -> CreationResult {
        report::read_creation(body).map_or(CreationResult::Unclear, CreationResult::Follow)
    }

    fn read_poll(&self, status: u16, body: &[u8], task: &Task<'_>) -> PollResult {
        report::read_poll(status, body, task)
    }

    fn write_delivered(
        &self,
        task: &Task<'_>,
        _facts: &str,
        hosted: &[Option<HostedMedium>],
    ) -> Outcome {
        match hosted.first() {
            Some(Some(video)) => Outcome {
                used: used(task, video),
                ..snapshot::write_done(task, video)
            },
            _ => self.write_failed(task, Cause::Media, "The video could not be kept."),
        }
    }

    fn write_failed(&self, task: &Task<'_>, cause: Cause, message: &str) -> Outcome {
        snapshot::write_error(task, code_of(cause), message)
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

    fn bound(&self, _profile: &Profile) -> UsageBound {
        UsageBound {
            seconds: self.seconds(),
            resolution: Some(self.resolution().to_owned()),
            ..UsageBound::default()
        }
    }

    fn write(&self, _to: &CreationTarget<'_>) -> Result<Vec<Bytes>, Failure> {
        Ok(self.write_body())
    }

    fn memo(&self) -> Option<String> {
        Some(self.seconds().to_string())
    }
}
