//! Polls an operation.

use crate::call_context::CallContext;
use crate::google::{ErrorForm, Refusal, authorise, download_uri, host_of, one_line};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use crate::seal;
use crate::video_a::Job;
use crate::video_file::mp4;
use http::StatusCode;
use serde_json::{Value, json};

const ROOT: &str = "/v1beta/";
const MARK: &str = "/operations/";
/// The header that `cloud/vertex.rs` adds to polls that it forwards.
pub(crate) const HOSTED: &str = "x-sim-hosted";
const TYPE: &str =
    "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse";

pub(crate) fn is_operation(path: &str) -> bool {
    path.starts_with(ROOT) && path.contains(MARK)
}

#[derive(Debug)]
pub(crate) struct Poll {
    job: Job,
    /// The operation's name, as the poll's path has it.
    name: String,
    model: String,
    host: String,
    /// Whether a cloud forwarded the poll. Clouds have their own form for the video.
    is_hosted: bool,
}

impl Protocol for Poll {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        authorise(call.parts, call.settings)
            .map_err(|refusal| ErrorForm::OneLine.failure(&refusal))?;
        let path = call.parts.uri.path();
        let name = path.strip_prefix(ROOT).unwrap_or_default();
        let id = name.rsplit_once('/').map(|(_, id)| id);
        let job = id.and_then(|id| call.jobs.poll(id));
        let job = job.filter(|job| !job.has_word("expire"));
        let job = job.ok_or_else(|| {
            let message = format!("Operation {name} not found.");
            ErrorForm::OneLine.failure(&Refusal::not_found(message))
        })?;
        Ok(Self {
            model: format!("poll/{}", job.model),
            name: name.to_owned(),
            host: host_of(call),
            is_hosted: call.parts.headers.contains_key(HOSTED),
            job,
        })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, _: &CallContext<'_>) -> Reply {
        let job = &self.job;
        let pending = job.polls_pending();
        let operation = if job.polls > pending {
            self.end()
        } else if job.polls == 1 {
            // `done` is absent while the operation runs.
            json!({ "name": self.name })
        } else {
            let percent = job.polls.saturating_mul(100) / pending.saturating_add(1);
            json!({ "name": self.name, "metadata": { "progressPercent": percent } })
        };
        one_line(StatusCode::OK, &operation)
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &ErrorForm::OneLine
    }
}

impl Poll {
    fn end(&self) -> Value {
        let job = &self.job;
        let mut operation = json!({ "name": self.name, "done": true });
        if job.has_word("fail") {
            let message = format!("Unsupported input image size for {}.", job.model);
            operation["error"] = json!({ "code": 3, "message": message, "details": [] });
            return operation;
        }
        operation["response"] = self.response();
        operation
    }

    fn response(&self) -> Value {
        let job = &self.job;
        let is_hosted = self.is_hosted || job.has_word("vertex");
        let inside = if job.has_word("refuse") {
            let reason =
                "The prompt could not be submitted. See https://ai.sim-upstream.example/policies.";
            json!({ "raiMediaFilteredCount": 1, "raiMediaFilteredReasons": [reason] })
        } else if job.has_word("empty") {
            json!({})
        } else if is_hosted {
            let data = seal::encode(&mp4(job.seconds, &job.prompt));
            let video = json!({ "bytesBase64Encoded": data, "mimeType": "video/mp4" });
            json!({ "videos": [video], "raiMediaFilteredCount": 0 })
        } else if job.has_word("inline") {
            let data = seal::encode(&mp4(job.seconds, &job.prompt));
            let video = json!({ "encodedVideo": data, "encoding": "video/mp4" });
            json!({ "generatedSamples": [{ "video": video }] })
        } else {
            let uri = download_uri(&self.host, job);
            json!({ "generatedSamples": [{ "video": { "uri": uri } }] })
        };
        if is_hosted {
            return inside;
        }
        json!({ "@type": TYPE, "generateVideoResponse": inside })
    }
}
