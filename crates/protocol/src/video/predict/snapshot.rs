//! Writes snapshots: the form of an operation in lookups and callbacks. Its name is the id of the task.

use crate::json::write::{self, Object};
use crate::video::google::DEADLINE_EXCEEDED;
use crate::video::media::HostedMedium;
use crate::video::task::{Outcome, ReportedUsage, RunningState, Task};

pub(super) fn write_accepted(id: &str) -> Vec<u8> {
    operation(id, |_| {})
}

pub(super) fn write_running(task: &Task<'_>, progress: Option<u8>) -> RunningState {
    RunningState {
        status: "running",
        progress,
        snapshot: operation(task.id, |object| {
            object.boolean("done", false);
        }),
    }
}

/// An operation whose video the gateway has copied. Clients of this protocol download it as a file.
pub(super) fn write_done(task: &Task<'_>, video: &HostedMedium) -> Outcome {
    let (url, mime) = (video.file_url(task.public_url), video.kind.media_type());
    let snapshot = response(task, |response| {
        response.array("generatedSamples", |samples| {
            samples.object(|sample| {
                sample.object("video", |video| {
                    video.text("uri", &url).text("mimeType", mime);
                });
            });
        });
    });
    ended("done", true, snapshot)
}

/// An operation whose videos the upstream's filters removed.
pub(super) fn write_filtered(task: &Task<'_>, count: u64, reasons: &[String]) -> Outcome {
    let snapshot = response(task, |response| {
        response.number("raiMediaFilteredCount", count);
        response.array("raiMediaFilteredReasons", |list| {
            for reason in reasons {
                list.text(reason);
            }
        });
    });
    ended("filtered", false, snapshot)
}

pub(super) fn write_expired(task: &Task<'_>) -> Outcome {
    let message = "The task passed its lifetime.";
    Outcome {
        status: "expired",
        ..write_error(task, DEADLINE_EXCEEDED, message)
    }
}

/// An operation that failed, as reported by the upstream or as decided by the gateway.
pub(super) fn write_error(task: &Task<'_>, code: i64, message: &str) -> Outcome {
    let snapshot = operation(task.id, |object| {
        object.boolean("done", true);
        object.object("error", |error| {
            error.number("code", code).text("message", message);
        });
    });
    ended("failed", false, snapshot)
}

fn response(task: &Task<'_>, write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    operation(task.id, |object| {
        object.boolean("done", true);
        object.object("response", |response| {
            response.object("generateVideoResponse", write);
        });
    })
}

fn operation(id: &str, rest: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write::object(&mut out, |object| {
        object.text("name", id);
        rest(object);
    });
    out
}

fn ended(status: &'static str, is_success: bool, snapshot: Vec<u8>) -> Outcome {
    Outcome {
        status,
        is_success,
        used: ReportedUsage::default(),
        snapshot,
    }
}
