//! Reads the upstream's answer, which arrives when the work is done.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::snapshot::write_ended;
use super::usage::Usage;
use crate::video::google::{clean, delivery, read_error, read_video};
use crate::video::task::{CreationResult, Outcome, ReportedUsage, Task};

/// The maximum number of texts that are passed on with a video.
const TEXTS_MAX: usize = 16;

/// Data that the upstream reported besides the video.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct VideoFacts {
    pub(super) texts: Vec<String>,
    pub(super) usage: Usage,
}

impl VideoFacts {
    /// Reads stored facts. A text that cannot be read yields empty facts.
    pub(super) fn read(facts: &str) -> Self {
        serde_json::from_str(facts).unwrap_or_default()
    }
}

/// Reads the answer to a creation that waited for its video.
pub(super) fn read_answer(body: &[u8], task: &Task<'_>) -> CreationResult {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
        return CreationResult::Unclear;
    };
    let usage = Usage::read(&value["usage"]);
    let status = match value["status"].as_str() {
        Some("completed") => return delivered(&mut value, usage, task),
        Some("failed" | "requires_action") => "failed",
        Some("cancelled") => "cancelled",
        Some("incomplete" | "requires_continuation") => "incomplete",
        Some("budget_exceeded") => "budget_exceeded",
        _ => return CreationResult::Unclear,
    };
    let (code, message) = fault(&value, task);
    let message = message.unwrap_or_else(|| unexplained(status).to_owned());
    CreationResult::Ended(Outcome {
        used: ReportedUsage {
            tokens: usage.reported_video_tokens(),
            ..ReportedUsage::default()
        },
        ..write_ended(task, status, (code, &message), &usage)
    })
}

/// The message for an end without a reason from the upstream.
fn unexplained(status: &str) -> &'static str {
    match status {
        "cancelled" => "Video generation was cancelled.",
        "incomplete" => "Video generation broke off.",
        "budget_exceeded" => "Video generation passed its budget.",
        _ => "Video generation failed.",
    }
}

/// Reads a completed interaction. If it ends with a text instead of a video, the text is a refusal.
/// Without a video nothing was delivered, so nothing is charged, even if usage is reported.
fn delivered(value: &mut Value, usage: Usage, task: &Task<'_>) -> CreationResult {
    let (code, error_message) = fault(value, task);
    let steps = value["steps"].as_array_mut().into_iter().flatten().rev();
    let outputs = steps.filter(|step| step["type"] == "model_output");
    let mut said = None;
    let mut has_clip = false;
    for step in outputs {
        let mut texts = Vec::new();
        let mut source = None;
        for item in step["content"].as_array_mut().into_iter().flatten() {
            match item["type"].as_str() {
                Some("text") if texts.len() < TEXTS_MAX => {
                    texts.extend(item["text"].as_str().map(|text| clean(text, task)));
                }
                Some("video") => {
                    has_clip = true;
                    source = read_video(item, &["data"]).or(source);
                }
                _ => {}
            }
        }
        if let Some(source) = source {
            let facts = VideoFacts { texts, usage };
            let facts = serde_json::to_string(&facts).unwrap_or_default();
            return CreationResult::Delivered(delivery(source, facts));
        }
        said = said.or_else(|| texts.into_iter().find(|text| !text.is_empty()));
    }
    // A text next to a clip describes the clip. It is not the reason why the clip has no data.
    let message = error_message.or(said.filter(|_| !has_clip));
    let message = message.unwrap_or_else(|| "The upstream delivered no video.".to_owned());
    CreationResult::Ended(write_ended(task, "failed", (code, &message), &usage))
}

/// The error of the last step that has one, otherwise the first error of the interaction itself.
fn fault(value: &Value, task: &Task<'_>) -> (i64, Option<String>) {
    let steps = value["steps"].as_array().into_iter().flatten().rev();
    let mut of_steps = steps.map(|step| &step["error"]);
    let error = of_steps.find(|error| error.is_object());
    read_error(error.unwrap_or(&value["errors"][0]), task)
}
