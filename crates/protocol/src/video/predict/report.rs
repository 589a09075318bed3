//! Reads the answers to polls.

use serde_json::{Map, Value};

use super::snapshot::{write_error, write_filtered, write_running};
use crate::video::google::{INTERNAL, clean, delivery, read_error, read_video};
use crate::video::media::Source;
use crate::video::task::{Outcome, PollResult, Task, percent};

/// The maximum length of an operation name.
const NAME_BYTES_MAX: usize = 512;
/// The maximum number of reasons that are passed on.
const REASONS_MAX: usize = 8;
/// The members in which upstreams of this family return videos.
const VIDEO_MEMBERS: [&str; 4] = [
    "/generateVideoResponse/generatedSamples",
    "/generateVideoResponse/generatedVideos",
    "/generatedSamples",
    "/videos",
];

/// The operation's name in the upstream's answer to a creation. It becomes part of a URL path, so
/// its characters are checked.
pub(super) fn read_creation(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let name = value["name"].as_str()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(plain);
    let is_name = name.len() <= NAME_BYTES_MAX && name.split('/').all(is_part);
    is_name.then(|| name.to_owned())
}

/// Reads the answer to a poll. `done` is often absent while an operation runs.
pub(super) fn read_poll(status: u16, body: &[u8], task: &Task<'_>) -> PollResult {
    match status {
        200 => {}
        404 => return PollResult::UnknownTask,
        _ => return PollResult::Unclear,
    }
    let Ok(Value::Object(mut operation)) = serde_json::from_slice(body) else {
        return PollResult::Unclear;
    };
    match operation.get("done") {
        Some(Value::Bool(true)) => {}
        None | Some(Value::Bool(false) | Value::Null) if operation.contains_key("name") => {
            return running(&operation, task);
        }
        _ => return PollResult::Unclear,
    }
    let error = operation.get("error").filter(|error| !error.is_null());
    if let Some(error) = error {
        return PollResult::Ended(failed(error, task));
    }
    let mut response = operation.remove("response").unwrap_or_default();
    if let Some(source) = video(&mut response) {
        return PollResult::Delivered(delivery(source, String::new()));
    }
    PollResult::Ended(without_video(&response, task))
}

/// An operation that is still running. Snapshots do not contain the progress, but operators can see it.
fn running(operation: &Map<String, Value>, task: &Task<'_>) -> PollResult {
    let metadata = operation.get("metadata");
    let progress = metadata.and_then(|it| percent(&it["progressPercent"]));
    PollResult::Running(progress.map(|percent| write_running(task, Some(percent))))
}

/// The first video, in any of the members that this family uses.
fn video(response: &mut Value) -> Option<Source> {
    for place in VIDEO_MEMBERS {
        let samples = response.pointer_mut(place).and_then(Value::as_array_mut);
        for sample in samples.into_iter().flatten() {
            let video = if sample["video"].is_object() {
                &mut sample["video"]
            } else {
                sample
            };
            if let Some(source) = read_video(video, &["encodedVideo", "bytesBase64Encoded"]) {
                return Some(source);
            }
        }
    }
    None
}

fn failed(error: &Value, task: &Task<'_>) -> Outcome {
    let (code, message) = read_error(error, task);
    let message = message.as_deref().unwrap_or("Video generation failed.");
    write_error(task, code, message)
}

/// The end of an operation without a video: the upstream's filters removed all samples, or it made none.
fn without_video(response: &Value, task: &Task<'_>) -> Outcome {
    let places = [&response["generateVideoResponse"], response];
    let count = |place: &&&Value| place["raiMediaFilteredCount"].as_u64().unwrap_or(0) > 0;
    let reasons = |place: &&&Value| place["raiMediaFilteredReasons"].is_array();
    let Some(filtered) = places.iter().find(|place| count(place) || reasons(place)) else {
        let message = "The upstream delivered no video.";
        return write_error(task, INTERNAL, message);
    };
    let reasons = filtered["raiMediaFilteredReasons"].as_array();
    let reasons: Vec<String> = reasons
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(REASONS_MAX)
        .map(|reason| clean(reason, task))
        .collect();
    let count = filtered["raiMediaFilteredCount"].as_u64();
    write_filtered(task, count.unwrap_or(1).max(1), &reasons)
}
