//! Handles a call, from the request body to the video.

use super::video_spec::{self, VideoSpec};
use crate::call_context::CallContext;
use crate::catalog;
use crate::date::iso_8601;
use crate::google::{ErrorForm, Refusal, authorise, download_uri, host_of, one_line};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use crate::seal;
use crate::tokens::count_tokens;
use crate::video_a::{Job, Jobs};
use crate::video_file::mp4;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

/// The number of tokens of one second of video at 720p. The simulator uses this number at every resolution.
const TOKENS_PER_SECOND: u64 = 5_792;

/// Whether a call of the Interactions endpoint names a video model.
pub(crate) fn is_asked(call: &IncomingCall<'_>) -> bool {
    let request: Option<Value> = serde_json::from_slice(call.body).ok();
    let model = request.as_ref().and_then(|it| it["model"].as_str());
    model.is_some_and(catalog::makes_videos)
}

#[derive(Debug)]
pub(crate) struct Create {
    request: Value,
    model: String,
    host: String,
    jobs: Arc<Jobs>,
}

impl Protocol for Create {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        authorise(call.parts, call.settings)
            .map_err(|refusal| ErrorForm::Interactions.failure(&refusal))?;
        let request: Value = serde_json::from_slice(call.body).map_err(|_| {
            ErrorForm::Interactions.failure(&Refusal::invalid("Invalid JSON payload received."))
        })?;
        Ok(Self {
            model: request["model"].as_str().unwrap_or_default().to_owned(),
            request,
            host: host_of(call),
            jobs: Arc::clone(call.jobs),
        })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let spec = match video_spec::read(&self.request) {
            Ok(spec) => spec,
            Err(refusal) => return ErrorForm::Interactions.failure(&refusal),
        };
        let mut seed = context.seed.clone();
        let job = Job {
            // File names consist of lower-case letters and digits.
            id: seed.letters(24).to_ascii_lowercase(),
            model: context.name.to_owned(),
            prompt: spec.prompt.clone(),
            seconds: spec.seconds,
            polls: 0,
        };
        self.jobs.add(job.clone());
        one_line(StatusCode::OK, &self.interaction(&spec, &job, context))
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &ErrorForm::Interactions
    }
}

impl Create {
    fn interaction(&self, spec: &VideoSpec, job: &Job, context: &CallContext<'_>) -> Value {
        let ends = [
            ("fail", "failed"),
            ("cancel", "cancelled"),
            ("incomplete", "incomplete"),
            ("budget", "budget_exceeded"),
        ];
        let end = ends.into_iter().find(|(word, _)| job.has_word(word));
        let status = end.map_or("completed", |(_, status)| status);
        let has_video = status == "completed" && !job.has_word("refuse");
        let signature = seal::seal("thought", context.name, &job.prompt);
        let mut interaction = json!({
            "id": format!("v1_{}", job.id),
            "object": "interaction",
            "model": context.reported_model(),
            "status": status,
            "created": iso_8601(context.created),
            "updated": iso_8601(context.created),
            "steps": [
                self.request["input"][0],
                { "type": "thought", "signature": signature },
                self.output(status, has_video, spec, job),
            ],
        });
        if !job.has_word("unpriced") {
            let mut usage_json = usage(spec, has_video);
            if job.has_word("totals")
                && let Some(usage_json) = usage_json.as_object_mut()
            {
                usage_json.retain(|name, _| name.starts_with("total_"));
            }
            interaction["usage"] = usage_json;
        }
        interaction
    }

    fn output(&self, status: &str, has_video: bool, spec: &VideoSpec, job: &Job) -> Value {
        if status == "failed" {
            let message = format!("The prompt was blocked by the filters of {}.", job.model);
            let error = json!({ "code": 3, "message": message });
            return json!({ "type": "model_output", "content": [], "error": error });
        }
        let mut content = Vec::new();
        if has_video {
            content.push(json!({ "type": "text", "text": "Here is your clip." }));
            let mut video = json!({ "type": "video", "mime_type": "video/mp4" });
            if job.has_word("empty") {
                video["data"] = "".into();
            } else if spec.by_uri && !job.has_word("inline") {
                video["uri"] = download_uri(&self.host, job).into();
            } else {
                video["data"] = seal::encode(&mp4(job.seconds, &job.prompt)).into();
            }
            content.push(video);
        } else if job.has_word("refuse") {
            content.push(json!({ "type": "text", "text": "I cannot make this video." }));
        }
        json!({ "type": "model_output", "content": content })
    }
}

fn usage(spec: &VideoSpec, has_video: bool) -> Value {
    let input = count_tokens(&spec.prompt);
    let output = if has_video {
        spec.seconds * TOKENS_PER_SECOND
    } else {
        0
    };
    json!({
        "total_input_tokens": input,
        "input_tokens_by_modality": [{ "modality": "text", "tokens": input }],
        "total_cached_tokens": 0,
        "total_output_tokens": output,
        "output_tokens_by_modality": [{ "modality": "video", "tokens": output }],
        "total_thought_tokens": 0,
        "total_tool_use_tokens": 0,
        "total_tokens": input + output,
    })
}
