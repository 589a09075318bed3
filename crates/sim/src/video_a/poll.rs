//! Polls a task, and serves its video.

use super::jobs::Job;
use crate::call_context::CallContext;
use crate::openai::{self};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use crate::video_file;
use http::StatusCode;
use http::header::HOST;
use serde_json::{Value, json};

/// The price of one second of video, in ticks of 1e-10 US dollars.
const TICKS_PER_SECOND: u64 = 500_000_000;
const PREFIX: &str = "/v1/videos/";
const FILES: &str = "/v1/videos/films/";

#[derive(Debug)]
pub(crate) struct Poll {
    job: Job,
    model: String,
    host: String,
}

impl Protocol for Poll {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        openai::authorise(&call.parts.headers, call.settings)
            .map_err(|refusal| openai::failure(&refusal))?;
        let id = call.parts.uri.path().strip_prefix(PREFIX);
        let job = id.and_then(|id| call.jobs.poll(id));
        let job = job.ok_or_else(|| {
            let unknown = json!({ "code": "not-found", "error": "no such request" });
            Reply::json(StatusCode::NOT_FOUND, unknown.to_string())
        })?;
        let host = call.parts.headers.get(HOST);
        let host = host.and_then(|host| host.to_str().ok());
        Ok(Self {
            model: format!("poll/{}", job.model),
            host: host.unwrap_or_default().to_owned(),
            job,
        })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, _: &CallContext<'_>) -> Reply {
        let job = &self.job;
        let pending = job.polls_pending();
        if job.polls <= pending {
            // The answer to the first poll of a running task has no body.
            let progress = job.polls.saturating_mul(100) / pending.saturating_add(1);
            let body = match job.polls {
                1 => String::new(),
                _ => json!({ "status": "pending", "progress": progress }).to_string(),
            };
            return Reply::json(StatusCode::ACCEPTED, body);
        }
        Reply::json(StatusCode::OK, self.end().to_string())
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &openai::JsonErrors
    }
}

impl Poll {
    fn end(&self) -> Value {
        let job = &self.job;
        let usage = json!({ "cost_in_usd_ticks": job.seconds * TICKS_PER_SECOND });
        if job.has_word("expire") {
            return json!({ "status": "expired" });
        }
        if job.has_word("fail") {
            let message = format!("{} could not decode the input", job.model);
            let error = json!({ "code": "invalid_argument", "message": message });
            return json!({ "status": "failed", "progress": 0, "model": job.model, "error": error });
        }
        if job.has_word("refuse") {
            let error =
                json!({ "code": "permission_denied", "message": "The result was moderated." });
            return json!({ "status": "failed", "progress": 0, "error": error, "usage": usage });
        }
        let withheld = job.has_word("withhold");
        let url = if withheld {
            String::new()
        } else {
            format!("http://{}{FILES}{}.mp4", self.host, job.id)
        };
        let video = json!({ "url": url, "duration": job.seconds, "respect_moderation": !withheld });
        let mut end =
            json!({ "status": "done", "progress": 100, "model": job.model, "video": video });
        if job.has_word("nothing")
            && let Some(end) = end.as_object_mut()
        {
            end.remove("video");
        }
        if !job.has_word("unpriced") {
            end["usage"] = usage;
        }
        end
    }
}

/// Serves the video of a task, for which no key is needed.
pub(crate) fn show_file(call: &IncomingCall<'_>) -> Reply {
    let name = call.parts.uri.path().strip_prefix(FILES);
    let id = name.and_then(|name| name.strip_suffix(".mp4"));
    match id.and_then(|id| call.jobs.find(id)) {
        Some(job) => Reply::whole(
            StatusCode::OK,
            "video/mp4",
            video_file::mp4(job.seconds, &job.prompt),
        ),
        None => Reply::whole(StatusCode::NOT_FOUND, "text/plain", "no such film"),
    }
}
