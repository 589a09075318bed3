//! Writes snapshots: the form of an interaction in lookups and callbacks. Its id is the id of the task.

use super::report::VideoFacts;
use super::usage::Usage;
use crate::json::write::{self, Object};
use crate::shared::iso_time::iso;
use crate::video::media::HostedMedium;
use crate::video::task::{Outcome, ReportedUsage, RunningState, Task};

pub(super) fn write_running(task: &Task<'_>, status: &'static str) -> RunningState {
    let mut snapshot = Vec::new();
    write::object(&mut snapshot, |object| {
        head(object, task, status);
        object.array("steps", |_| {});
        Usage::default().write(object);
    });
    RunningState {
        status,
        progress: None,
        snapshot,
    }
}

/// A task whose video the gateway has copied.
pub(super) fn write_done(task: &Task<'_>, facts: &VideoFacts, video: &HostedMedium) -> Outcome {
    let snapshot = snapshot(task, "completed", &facts.usage, |step| {
        step.array("content", |content| {
            for text in facts.texts.iter().filter(|text| !text.is_empty()) {
                content.object(|item| {
                    item.text("type", "text").text("text", text);
                });
            }
            content.object(|item| {
                item.text("type", "video");
                item.text("mime_type", video.kind.media_type());
                item.text("uri", &video.url(task.public_url));
            });
        });
    });
    Outcome {
        status: "completed",
        is_success: true,
        used: ReportedUsage::default(),
        snapshot,
    }
}

/// A task that ended without a video. `fault` is a `google.rpc.Code` and a message.
pub(super) fn write_ended(
    task: &Task<'_>,
    status: &'static str,
    fault: (i64, &str),
    usage: &Usage,
) -> Outcome {
    let (code, message) = fault;
    let mut out = snapshot(task, status, usage, |step| {
        step.array("content", |_| {});
        step.object("error", |error| {
            error.number("code", code).text("message", message);
        });
    });
    out.pop();
    Object::resume(&mut out, |object| {
        object.array("errors", |errors| {
            errors.object(|error| {
                error
                    .text("code", "generation_failed")
                    .text("message", message);
            });
        });
    });
    Outcome {
        status,
        is_success: false,
        used: ReportedUsage::default(),
        snapshot: out,
    }
}

/// The members that every ended task has. Of the upstream's steps only the last output is shown.
fn snapshot(
    task: &Task<'_>,
    status: &str,
    usage: &Usage,
    step: impl FnOnce(&mut Object<'_>),
) -> Vec<u8> {
    let mut out = Vec::new();
    write::object(&mut out, |object| {
        head(object, task, status);
        object.array("steps", |steps| {
            steps.object(|object| {
                object.text("type", "model_output");
                step(object);
            });
        });
        usage.write(object);
    });
    out
}

fn head(object: &mut Object<'_>, task: &Task<'_>, status: &str) {
    object
        .text("id", task.id)
        .text("object", "interaction")
        .text("model", task.model)
        .text("status", status)
        .text("created", &iso(task.created_ms.div_euclid(1000)))
        .text("updated", &iso(task.now_ms.div_euclid(1000)));
}
