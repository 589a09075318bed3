//! Writes snapshots: the form of a task in lookups, lists and callbacks.
//!
//! The order of members is fixed. The bytes of an ended task are made once and stored.

use crate::json::write::{self, Object};
use crate::video::{Outcome, ReportedUsage, Task};

/// One page of tasks with their stored snapshots, and the total number of tasks.
pub fn write_list<'a>(snapshots: impl IntoIterator<Item = &'a [u8]>, total: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::object(&mut out, |object| {
        object.array("items", |items| {
            for snapshot in snapshots {
                items.value(|out| out.extend_from_slice(snapshot));
            }
        });
        object.number("total", total);
    });
    out
}

/// The end of a task without a result.
pub(super) fn ended(status: &'static str, snapshot: Vec<u8>) -> Outcome {
    Outcome {
        status,
        is_success: false,
        used: ReportedUsage::default(),
        snapshot,
    }
}

/// A task that failed, as reported by the upstream or as decided by the gateway.
pub(super) fn failed(task: &Task<'_>, code: &str, message: &str) -> Outcome {
    let snapshot = snapshot(task, "failed", |object| {
        object.object("error", |error| {
            error.text("code", code).text("message", message);
        });
    });
    ended("failed", snapshot)
}

/// A task in this state as of now, without further details.
pub(super) fn plain(task: &Task<'_>, status: &str) -> Vec<u8> {
    snapshot(task, status, |_| {})
}

/// A snapshot as of now.
pub(super) fn snapshot(
    task: &Task<'_>,
    status: &str,
    rest: impl FnOnce(&mut Object<'_>),
) -> Vec<u8> {
    snapshot_of(task, status, task.now_ms / 1000, rest)
}

/// The members that every snapshot has, followed by those of its state.
pub(super) fn snapshot_of(
    task: &Task<'_>,
    status: &str,
    updated_at_s: i64,
    rest: impl FnOnce(&mut Object<'_>),
) -> Vec<u8> {
    let mut out = Vec::new();
    write::object(&mut out, |object| {
        object
            .text("id", task.id)
            .text("model", task.model)
            .text("status", status)
            .number("created_at", task.created_ms / 1000)
            .number("updated_at", updated_at_s);
        rest(object);
    });
    out
}
