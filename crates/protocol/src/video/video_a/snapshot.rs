//! Writes snapshots: the form of a task in lookups and callbacks.
//!
//! The order of members is fixed. The bytes of an ended task are made once and stored.

use crate::json::write::{self, Object};
use crate::video::task::{Outcome, ReportedUsage, RunningState, Task};

pub(super) fn write_accepted(id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write::object(&mut out, |object| {
        object.text("request_id", id);
    });
    out
}

pub(super) fn write_pending(task: &Task<'_>, progress: u8) -> RunningState {
    RunningState {
        status: "pending",
        progress: Some(progress),
        snapshot: snapshot(task, "pending", progress, |_| {}),
    }
}

/// A task that failed, as reported by the upstream or as decided by the gateway.
pub(super) fn write_failed(task: &Task<'_>, code: &str, message: &str) -> Outcome {
    Outcome {
        status: "failed",
        is_success: false,
        used: ReportedUsage::default(),
        snapshot: snapshot(task, "failed", 0, |object| error(object, code, message)),
    }
}

pub(super) fn write_expired(task: &Task<'_>) -> Outcome {
    let message = "The task passed its lifetime.";
    Outcome {
        status: "expired",
        is_success: false,
        used: ReportedUsage::default(),
        snapshot: snapshot(task, "expired", 0, |object| {
            error(object, "service_unavailable", message);
        }),
    }
}

pub(super) fn error(object: &mut Object<'_>, code: &str, message: &str) {
    object.object("error", |error| {
        error.text("code", code).text("message", message);
    });
}

pub(super) fn usage(object: &mut Object<'_>, ticks: Option<u64>) {
    if let Some(ticks) = ticks {
        object.object("usage", |usage| {
            usage.number("cost_in_usd_ticks", ticks);
        });
    }
}

/// The members that every snapshot has, followed by those of its state.
pub(super) fn snapshot(
    task: &Task<'_>,
    status: &str,
    progress: u8,
    rest: impl FnOnce(&mut Object<'_>),
) -> Vec<u8> {
    let mut out = Vec::new();
    write::object(&mut out, |object| {
        object
            .text("request_id", task.id)
            .text("status", status)
            .number("progress", progress)
            .text("model", task.model);
        rest(object);
    });
    out
}
