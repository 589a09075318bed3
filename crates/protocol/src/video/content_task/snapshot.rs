//! Snapshots: what look-ups, lists and callbacks show of a task.
//!
//! The member order is fixed; an ended task's bytes are made once and kept.

use crate::json::write::{self, Object};
use crate::video::{Outcome, Task, Used};

/// One page of tasks, their snapshots as they are, and how many there are in all.
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

/// The end of a task that made nothing.
pub(super) fn ended(status: &'static str, snapshot: Vec<u8>) -> Outcome {
    Outcome {
        status,
        is_success: false,
        used: Used::default(),
        snapshot,
    }
}

/// A task that failed, by the upstream's word or by ours.
pub(super) fn failed(task: &Task<'_>, code: &str, message: &str) -> Outcome {
    let snapshot = snapshot(task, "failed", |object| {
        object.object("error", |error| {
            error.text("code", code).text("message", message);
        });
    });
    ended("failed", snapshot)
}

/// A task that is in a state as of now, about which there is nothing more to say.
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

/// The members that every snapshot has, and those of its state behind them.
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
