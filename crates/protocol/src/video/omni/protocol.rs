//! Implements the traits through which the engine uses this protocol.

use bytes::Bytes;

use super::report::{self, VideoFacts};
use super::request::Request;
use super::snapshot;
use super::usage::Usage;
use crate::failure::Failure;
use crate::profile::Profile;
use crate::video::google::{DEADLINE_EXCEEDED, code_of, used};
use crate::video::media::HostedMedium;
use crate::video::protocol::{CreationRequest, CreationTarget, Protocol};
use crate::video::task::{
    Cause, CreationResult, Outcome, PollResult, ReportedUsage, RunningState, Task, UsageBound,
};

/// The protocol of Omni interactions, whose upstream answers only when the video is ready.
#[derive(Debug)]
pub struct Omni;

impl Protocol for Omni {
    fn is_blocking(&self) -> bool {
        true
    }

    fn write_accepted(&self, task: &Task<'_>) -> Vec<u8> {
        snapshot::write_running(task, "queued").snapshot
    }

    /// The status is `in_progress` from the start, because the upstream is called as soon as the client has its
    /// answer.
    fn write_first(&self, task: &Task<'_>) -> RunningState {
        snapshot::write_running(task, "in_progress")
    }

    fn read_creation(&self, body: &[u8], task: &Task<'_>) -> CreationResult {
        report::read_answer(body, task)
    }

    /// The upstream stores nothing that could be polled.
    fn read_poll(&self, _status: u16, _body: &[u8], _task: &Task<'_>) -> PollResult {
        PollResult::Unclear
    }

    fn write_delivered(
        &self,
        task: &Task<'_>,
        facts: &str,
        hosted: &[Option<HostedMedium>],
    ) -> Outcome {
        let facts = VideoFacts::read(facts);
        match hosted.first() {
            Some(Some(video)) => Outcome {
                used: ReportedUsage {
                    tokens: facts.usage.video_tokens(),
                    ..used(task, video)
                },
                ..snapshot::write_done(task, &facts, video)
            },
            _ => self.write_failed(task, Cause::Media, "The video could not be kept."),
        }
    }

    fn write_failed(&self, task: &Task<'_>, cause: Cause, message: &str) -> Outcome {
        let fault = (code_of(cause), message);
        snapshot::write_ended(task, "failed", fault, &Usage::default())
    }

    fn write_expired(&self, task: &Task<'_>) -> Outcome {
        let fault = (DEADLINE_EXCEEDED, "The task passed its lifetime.");
        snapshot::write_ended(task, "failed", fault, &Usage::default())
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
        let seconds = self.seconds_max(profile);
        let most = profile.video_tokens_per_second.unwrap_or(0);
        let tokens = seconds.saturating_mul(most);
        let (part, whole) = self.share_of_tokens();
        UsageBound {
            seconds,
            tokens: tokens.saturating_mul(part).div_ceil(whole),
            resolution: Some(self.resolution().to_owned()),
        }
    }

    fn write(&self, to: &CreationTarget<'_>) -> Result<Vec<Bytes>, Failure> {
        Ok(self.write_for(to.model))
    }

    fn memo(&self) -> Option<String> {
        self.seconds_charged_max()
            .map(|seconds| seconds.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::BuiltInProfile;
    use crate::video::omni::read_request;

    #[test]
    fn an_edit_is_held_for_the_longest_source_and_charged_as_it_became() {
        const EDIT: &str = r#"[{"type":"text","text":"fog"},
            {"type":"video","data":"AAAAIGZ0","mime_type":"video/mp4"}]"#;
        let profile = Profile {
            base: Some(BuiltInProfile::Omni11),
            ..Profile::default()
        };
        let profile = profile.over_base();
        for (input, duration, held, memo) in [
            (r#""fog""#, "", 10, Some("10")),
            (r#""fog""#, r#","duration":"3s""#, 3, Some("3")),
            (EDIT, "", 10, None),
            (EDIT, r#","duration":"3s""#, 10, None),
        ] {
            let format = format!(r#"{{"type":"video"{duration}}}"#);
            let body =
                format!(r#"{{"model":"maker/omni","input":{input},"response_format":{format}}}"#);
            let request = read_request(&Bytes::from(body)).unwrap();
            assert_eq!(request.bound(&profile).seconds, held, "{request:?}");
            assert_eq!(request.memo().as_deref(), memo, "{request:?}");
        }
    }
}
