//! Implements the traits through which the engine uses this protocol.

use std::time::Duration;

use bytes::Bytes;

use super::report::{self, DRAFT_PREFIX, INTERNAL, MOV, SUCCEEDED, end, memo_contains};
use super::request::{Request, write_request};
use super::snapshot::{failed, plain};
use crate::failure::Failure;
use crate::json::write;
use crate::profile::Profile;
use crate::tool::{Tool, Tools};
use crate::video::{
    Cause, CreationRequest, CreationResult, CreationTarget, Deletion, Draft, HostedMedium, Outcome,
    PollResult, Protocol, RunningState, Task, UsageBound,
};

/// The time that the gateway waits beyond the upstream's own time limit for a task (T11 in
/// `docs/invariants.md`).
const GRACE: Duration = Duration::from_secs(3600);

/// The word in the memo of a task that makes a draft.
const DRAFT: &str = "draft";

/// The content-task protocol, whose tasks can also be listed and deleted.
#[derive(Debug)]
pub struct ContentTask;

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
            seconds: 0,
            tokens: self.tokens_max(profile),
            resolution: self.resolution(profile).map(str::to_owned),
        }
    }

    fn write(&self, to: &CreationTarget<'_>) -> Result<Vec<Bytes>, Failure> {
        write_request(self, to)
    }

    fn memo(&self) -> Option<String> {
        let is_mov = self.options.output_format.as_deref() == Some(MOV);
        let words = [(DRAFT, self.options.draft), (MOV, is_mov)];
        let words = words.iter().filter(|it| it.1).map(|it| it.0.to_owned());
        let origin = self.draft().map(|id| format!("{DRAFT_PREFIX}{id}"));
        let words: Vec<String> = words.chain(origin).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    fn lifetime(&self) -> Option<Duration> {
        let expires_after = self.expires_after_s.map(Duration::from_secs);
        expires_after.map(|seconds| seconds + GRACE)
    }

    fn tools(&self) -> Tools {
        let mut tools = Tools::default();
        for kind in &self.options.tools {
            match Tool::of(kind) {
                Some(tool) => tools.add(tool),
                None => tools.add_unknown(),
            }
        }
        tools
    }

    fn draft(&self) -> Option<&str> {
        self.content.draft.as_ref().map(|draft| draft.id.as_str())
    }

    /// Requires a draft of this model that has succeeded (`docs/api/content-tasks.md`).
    fn check_draft(&self, found: &Draft<'_>) -> Result<(), Failure> {
        let message = if !memo_contains(found.memo, DRAFT) {
            "The task that `draft_task.id` names is not a draft."
        } else if found.model != self.model {
            "The draft that `draft_task.id` names was made by another model."
        } else if found.status != SUCCEEDED {
            "The draft that `draft_task.id` names has not succeeded."
        } else {
            return Ok(());
        };
        Err(Failure::invalid(message).param("content.draft_task.id"))
    }
}

impl Protocol for ContentTask {
    fn write_accepted(&self, task: &Task<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        write::object(&mut out, |object| {
            object.text("id", task.id);
        });
        out
    }

    fn write_first(&self, task: &Task<'_>) -> RunningState {
        RunningState {
            status: "queued",
            progress: None,
            snapshot: plain(task, "queued"),
        }
    }

    fn read_creation(&self, body: &[u8], _: &Task<'_>) -> CreationResult {
        let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        match value["id"].as_str() {
            Some(id) if !id.is_empty() => CreationResult::Follow(id.to_owned()),
            _ => CreationResult::Unclear,
        }
    }

    fn read_poll(&self, status: u16, body: &[u8], task: &Task<'_>) -> PollResult {
        report::read_poll(status, body, task)
    }

    fn write_delivered(
        &self,
        task: &Task<'_>,
        facts: &str,
        hosted: &[Option<HostedMedium>],
    ) -> Outcome {
        report::write_delivered(task, facts, hosted)
    }

    fn write_failed(&self, task: &Task<'_>, _: Cause, message: &str) -> Outcome {
        failed(task, INTERNAL, message)
    }

    fn write_expired(&self, task: &Task<'_>) -> Outcome {
        end(task, "expired")
    }

    fn write_cancelled(&self, task: &Task<'_>) -> Option<Outcome> {
        Some(end(task, "cancelled"))
    }

    /// The effect of a deletion in each state (T12 in `docs/invariants.md`).
    fn deletion(&self, status: &str) -> Deletion {
        match status {
            "queued" => Deletion::Cancel,
            "running" => Deletion::Running,
            "cancelled" => Deletion::Cancelled,
            _ => Deletion::Remove,
        }
    }
}
