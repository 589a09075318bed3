//! Reads the answers to polls.

use serde_json::{Number, Value};

use super::snapshot::{error, snapshot, usage, write_expired, write_failed, write_pending};
use crate::scrub::{explain, explain_code};
use crate::video::task::{Outcome, PollResult, ReportedUsage, Task, percent};

/// Reads the answer to a poll. Status 202 means a running task, regardless of the body. Older
/// answers for finished tasks have no `status`.
pub(super) fn read_poll(status: u16, body: &[u8], task: &Task<'_>) -> PollResult {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    match (status, value) {
        (202, value) => running(value.as_ref(), task),
        (404, _) => PollResult::UnknownTask,
        (200, Some(value)) => read_report(&value, task),
        _ => PollResult::Unclear,
    }
}

fn read_report(value: &Value, task: &Task<'_>) -> PollResult {
    let ticks = value["usage"]["cost_in_usd_ticks"].as_u64();
    match value["status"].as_str() {
        Some("pending") => running(Some(value), task),
        Some("done") => PollResult::Ended(done(&value["video"], ticks, task)),
        None if value["video"]["url"].is_string() => {
            PollResult::Ended(done(&value["video"], ticks, task))
        }
        Some("failed") => PollResult::Ended(failed(&value["error"], ticks, task)),
        Some("expired") => PollResult::Ended(Outcome {
            used: ticks_used(ticks),
            ..write_expired(task)
        }),
        _ => PollResult::Unclear,
    }
}

fn running(value: Option<&Value>, task: &Task<'_>) -> PollResult {
    let progress = value.and_then(|value| percent(&value["progress"]));
    PollResult::Running(progress.map(|progress| write_pending(task, progress)))
}

/// A finished task. The URL is the upstream's, unchanged (T9 in `docs/invariants.md`). If moderation
/// withholds the result, the URL is empty, because clients require a string, and only a reported cost is
/// charged. A finished task without a video for any other reason has failed.
fn done(video: &Value, ticks: Option<u64>, task: &Task<'_>) -> Outcome {
    let url = video["url"].as_str().unwrap_or_default();
    let is_there = url.starts_with("https://") || url.starts_with("http://");
    let is_withheld = video["respect_moderation"] == false;
    if !is_there && !is_withheld {
        return write_failed(task, "internal_error", "The upstream delivered no video.");
    }
    let seconds = video["duration"].as_number().and_then(whole_seconds);
    let snapshot = snapshot(task, "done", 100, |object| {
        object.object("video", |shown| {
            shown.text("url", if is_there { url } else { "" });
            if let Some(seconds) = seconds {
                shown.number("duration", seconds);
            }
            let respected = video["respect_moderation"].as_bool();
            shown.boolean("respect_moderation", respected.unwrap_or(true));
        });
        usage(object, ticks);
    });
    Outcome {
        status: "done",
        is_success: is_there,
        used: ReportedUsage {
            seconds,
            ..ticks_used(ticks)
        },
        snapshot,
    }
}

fn failed(report: &Value, ticks: Option<u64>, task: &Task<'_>) -> Outcome {
    let names = task.names();
    let code = report["code"].as_str();
    let code = code.and_then(|code| explain_code(code, names));
    let code = code.unwrap_or("internal_error");
    let message = report["message"].as_str();
    let message = message.and_then(|text| explain(text, names));
    let message = message.unwrap_or_else(|| "The task failed.".to_owned());
    Outcome {
        used: ticks_used(ticks),
        snapshot: snapshot(task, "failed", 0, |object| {
            error(object, code, &message);
            usage(object, ticks);
        }),
        ..write_failed(task, code, &message)
    }
}

fn ticks_used(usd_ticks: Option<u64>) -> ReportedUsage {
    ReportedUsage {
        usd_ticks,
        ..ReportedUsage::default()
    }
}

/// Seconds, rounded up. They are read from the digits, because billing uses no floats.
fn whole_seconds(number: &Number) -> Option<u64> {
    if let Some(seconds) = number.as_u64() {
        return Some(seconds);
    }
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.')?;
    let more = fraction.bytes().any(|digit| digit != b'0');
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_add(u64::from(more))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Task<'_> = Task {
        id: "task-1",
        model: "maker/video",
        upstream_model: "imagine-video",
        hidden: &[],
        created_ms: 0,
        now_ms: 0,
        memo: None,
        public_url: "",
    };

    fn shown(polled: PollResult) -> String {
        match polled {
            PollResult::Running(Some(standing)) => String::from_utf8(standing.snapshot).unwrap(),
            PollResult::Ended(outcome) => format!(
                "{} {:?} {}",
                outcome.status,
                outcome.used,
                String::from_utf8(outcome.snapshot).unwrap()
            ),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn every_answer_to_a_poll_is_understood() {
        let read = |status, body: &str| shown(read_poll(status, body.as_bytes(), &TASK));
        let answers = [
            read(200, r#"{"status":"done","usage":{"cost_in_usd_ticks":7}}"#),
            read(202, ""),
            read(202, "<html>"),
            read(202, r#"{"status":"pending","progress":37}"#),
            read(202, r#"{"status":"pending","progress":37.5}"#),
            read(200, r#"{"status":"pending","progress":100}"#),
            read(
                200,
                r#"{"status":"done","progress":100,"model":"imagine-video","video":{"url":"https://v.example/a.mp4","duration":8,"respect_moderation":true},"usage":{"cost_in_usd_ticks":4000000000}}"#,
            ),
            read(
                200,
                r#"{"video":{"url":"https://v.example/a.mp4","duration":8.2}}"#,
            ),
            read(
                200,
                r#"{"status":"done","video":{"url":null,"duration":8,"respect_moderation":false},"usage":{"cost_in_usd_ticks":-1}}"#,
            ),
            read(
                200,
                r#"{"status":"failed","error":{"code":"invalid_argument","message":"imagine-video cannot read https://a.example/x"},"usage":{"cost_in_usd_ticks":5}}"#,
            ),
            read(200, r#"{"status":"failed","error":{"code":"<script>"}}"#),
            read(200, r#"{"status":"expired"}"#),
            read(404, r#"{"code":"not found","error":"no such request"}"#),
            read(200, r#"{"status":"resting"}"#),
            read(200, "[]"),
            read(500, r#"{"status":"done"}"#),
        ];
        insta::assert_snapshot!(answers.join("\n"));
    }
}
