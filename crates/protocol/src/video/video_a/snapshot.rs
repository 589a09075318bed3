//! Snapshots: what look-ups and callbacks show of a task.
//!
//! The member order is fixed; an ended task's bytes are made once and kept.

use crate::json::write::{self, Object};
use crate::video::task::{Outcome, Standing, Task, Used};

/// The answer to a creation.
pub(super) fn write_accepted(id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write::object(&mut out, |object| {
        object.text("request_id", id);
    });
    out
}

/// A task on its way.
pub(super) fn write_pending(task: &Task<'_>, progress: u8) -> Standing {
    Standing {
        status: "pending",
        progress: Some(progress),
        snapshot: snapshot(task, "pending", progress, |_| {}),
    }
}

/// A task that failed, by the upstream's word or by ours.
pub(super) fn write_failed(task: &Task<'_>, code: &str, message: &str) -> Outcome {
    Outcome {
        status: "failed",
        is_success: false,
        used: Used::default(),
        snapshot: snapshot(task, "failed", 0, |object| error(object, code, message)),
    }
}

/// A task whose time is over.
pub(super) fn write_expired(task: &Task<'_>) -> Outcome {
    let message = "The task passed its lifetime.";
    Outcome {
        status: "expired",
        is_success: false,
        used: Used::default(),
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

/// The members that every snapshot has, and those of its state behind them.
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
