//! Reads the answers to polls, and writes the end of a task.

use serde_json::Value;

use super::resolution::known_resolution;
use super::snapshot::{ended, failed, plain, snapshot, snapshot_of};
use crate::json::write::Object;
use crate::scrub::{explain, explain_code};
use crate::video::{
    Delivery, HostedMedium, MediaKind, Medium, Outcome, PollResult, ReportedUsage, RunningState,
    Source, Task,
};

/// The word in the memo of a task whose result should be a MOV file.
pub(super) const MOV: &str = "mov";
/// The start of the word in the memo of a task that finishes a draft. Our id of the draft follows.
pub(super) const DRAFT_PREFIX: &str = "of=";
pub(super) const SUCCEEDED: &str = "succeeded";
/// The maximum length of a property of the video (`1080p`, `21:9`) that is passed on.
const WORD_BYTES_MAX: usize = 16;

/// The members of a result that are kept while its media are copied.
const FACTS: [&str; 14] = [
    "usage",
    "seed",
    "duration",
    "frames",
    "framespersecond",
    "resolution",
    "ratio",
    "output_format",
    "generate_audio",
    "draft",
    "safety_identifier",
    "revised_prompt",
    "tools",
    "execution_expires_after",
];

/// Reads the answer to a poll. The answer has status 200 in every state of the task.
pub(super) fn read_poll(status: u16, body: &[u8], task: &Task<'_>) -> PollResult {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    match (status, value) {
        (404, _) => PollResult::UnknownTask,
        (200, Some(value)) => read_report(&value, task),
        _ => PollResult::Unclear,
    }
}

fn read_report(value: &Value, task: &Task<'_>) -> PollResult {
    let ended = |outcome| {
        PollResult::Ended(Outcome {
            used: used(value),
            ..outcome
        })
    };
    match value["status"].as_str() {
        Some("queued") => PollResult::Running(Some(running("queued", value, task))),
        Some("running") => PollResult::Running(Some(running("running", value, task))),
        Some(SUCCEEDED) => match delivery(value, task) {
            Some(delivery) => PollResult::Delivered(delivery),
            None => PollResult::Ended(failed(task, INTERNAL, "There is no result.")),
        },
        Some("failed") => ended(failure(&value["error"], task)),
        Some("expired") => ended(end(task, "expired")),
        Some("cancelled" | "canceled") => ended(end(task, "cancelled")),
        _ => PollResult::Unclear,
    }
}

/// A result. The upstream keeps its media for a day.
fn delivery(value: &Value, task: &Task<'_>) -> Option<Delivery> {
    let video = url(&value["content"]["video_url"])?;
    let kind = if memo_contains(task.memo, MOV) {
        MediaKind::Mov
    } else {
        MediaKind::Mp4
    };
    let mut media = vec![Medium {
        kind,
        source: Source::Url(video),
        is_optional: false,
    }];
    if let Some(frame) = url(&value["content"]["last_frame_url"]) {
        media.push(Medium {
            kind: MediaKind::Png,
            source: Source::Url(frame),
            is_optional: true,
        });
    }
    let known = FACTS.iter().filter(|name| !value[**name].is_null());
    let facts = known.map(|name| ((*name).to_owned(), value[*name].clone()));
    let facts = Value::Object(facts.collect());
    Some(Delivery {
        facts: facts.to_string(),
        media,
    })
}

pub(super) fn write_delivered(
    task: &Task<'_>,
    facts: &str,
    hosted: &[Option<HostedMedium>],
) -> Outcome {
    let facts: Value = serde_json::from_str(facts).unwrap_or_default();
    let used = used(&facts);
    let url = |place: usize| {
        let hosted = hosted.get(place).and_then(Option::as_ref);
        hosted.map(|hosted| hosted.url(task.public_url))
    };
    let snapshot = snapshot(task, SUCCEEDED, |object| {
        object.null("error");
        object.object("content", |content| {
            for (name, place) in [("video_url", 0), ("last_frame_url", 1)] {
                if let Some(url) = url(place) {
                    content.text(name, &url);
                }
            }
        });
        if let Some(tokens) = used.tokens {
            object.object("usage", |usage| usage_of(usage, tokens, used));
        }
        write_properties(object, &facts);
        if let Some(draft) = draft_of(task.memo) {
            object.text("draft_task_id", draft);
        }
        expires_after(object, &facts);
    });
    Outcome {
        status: SUCCEEDED,
        is_success: true,
        used,
        snapshot,
    }
}

/// The code of a failure for which the upstream gave no code that clients may see, in the notation of this
/// family.
pub(super) const INTERNAL: &str = "InternalServiceError";

pub(super) fn memo_contains(memo: Option<&str>, word: &str) -> bool {
    memo.is_some_and(|memo| memo.split(' ').any(|it| it == word))
}

/// Our id of the draft that a task finishes.
fn draft_of(memo: Option<&str>) -> Option<&str> {
    memo?
        .split(' ')
        .find_map(|word| word.strip_prefix(DRAFT_PREFIX))
}

fn url(value: &Value) -> Option<String> {
    let url = value.as_str().filter(|url| !url.is_empty());
    url.map(str::to_owned)
}

/// A task that is still running. Its update time is the upstream's, so that equal reports yield
/// equal bytes.
fn running(status: &'static str, report: &Value, task: &Task<'_>) -> RunningState {
    let (first, last) = (task.created_ms / 1000, task.now_ms / 1000);
    let updated_at = report["updated_at"].as_i64().unwrap_or(last);
    let updated_at = updated_at.clamp(first, last.max(first));
    RunningState {
        status,
        progress: None,
        snapshot: snapshot_of(task, status, updated_at, |object| {
            expires_after(object, report);
        }),
    }
}

/// The end of a task without further details.
pub(super) fn end(task: &Task<'_>, status: &'static str) -> Outcome {
    ended(status, plain(task, status))
}

fn failure(report: &Value, task: &Task<'_>) -> Outcome {
    let names = task.names();
    let code = report["code"].as_str();
    let code = code.and_then(|code| explain_code(code, names));
    let message = report["message"].as_str();
    let message = message.and_then(|text| explain(text, names));
    let message = message.as_deref().unwrap_or("The task failed.");
    failed(task, code.unwrap_or(INTERNAL), message)
}

fn used(report: &Value) -> ReportedUsage {
    let usage = &report["usage"];
    let tokens = usage["completion_tokens"].as_u64();
    ReportedUsage {
        tokens: tokens.or_else(|| usage["total_tokens"].as_u64()),
        searches: usage["tool_usage"]["web_search"].as_u64(),
        resolution: report["resolution"].as_str().and_then(known_resolution),
        ..ReportedUsage::default()
    }
}

fn usage_of(usage: &mut Object<'_>, tokens: u64, used: ReportedUsage) {
    usage.number("completion_tokens", tokens);
    usage.number("total_tokens", tokens);
    if let Some(searches) = used.searches {
        usage.object("tool_usage", |tools| {
            tools.number("web_search", searches);
        });
    }
}

/// The properties of the video that the upstream reports, without its ids of other tasks and
/// without members that the gateway manages.
fn write_properties(object: &mut Object<'_>, report: &Value) {
    for name in ["seed", "duration", "frames", "framespersecond"] {
        if let Some(number) = report[name].as_i64() {
            object.number(name, number);
        }
    }
    for name in ["resolution", "ratio", "output_format"] {
        if let Some(word) = report[name].as_str().filter(|word| is_word(word)) {
            object.text(name, word);
        }
    }
    for name in ["generate_audio", "draft"] {
        if let Some(flag) = report[name].as_bool() {
            object.boolean(name, flag);
        }
    }
    for name in ["safety_identifier", "revised_prompt"] {
        if let Some(text) = report[name].as_str() {
            object.text(name, text);
        }
    }
    if let Some(tools) = report["tools"].as_array() {
        let types = tools.iter().filter_map(|tool| tool["type"].as_str());
        object.array("tools", |items| {
            for kind in types.filter(|kind| is_word(kind)) {
                items.object(|tool| {
                    tool.text("type", kind);
                });
            }
        });
    }
}

fn expires_after(object: &mut Object<'_>, report: &Value) {
    if let Some(seconds) = report["execution_expires_after"].as_u64() {
        object.number("execution_expires_after", seconds);
    }
}

fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    text.len() <= WORD_BYTES_MAX && text.bytes().all(plain)
}
