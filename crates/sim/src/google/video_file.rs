//! Serves video files: their metadata and their bytes. Both require the key, except after a redirect.

use super::error_form::ErrorForm;
use super::{Refusal, authorise, one_line};
use crate::call_context::CallContext;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use crate::video_a::Job;
use crate::video_file::mp4;
use http::header::{HOST, LOCATION};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

const PREFIX: &str = "/v1beta/files/";
const DOWNLOAD: &str = ":download";

pub(crate) fn is_file(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|id| !id.is_empty())
}

pub(crate) fn download_uri(host: &str, job: &Job) -> String {
    format!("http://{host}{PREFIX}{}{DOWNLOAD}?alt=media", job.id)
}

/// The `host` header of a call, for URLs in the answer.
pub(crate) fn host_of(call: &IncomingCall<'_>) -> String {
    let host = call.parts.headers.get(HOST);
    let host = host.and_then(|host| host.to_str().ok());
    host.unwrap_or_default().to_owned()
}

/// A request for a file. Faults for it are queued for `file/` followed by the model's name.
#[derive(Debug)]
pub(crate) struct File {
    job: Job,
    model: String,
    host: String,
    is_download: bool,
    /// Whether the client has followed a redirect.
    is_moved: bool,
}

impl Protocol for File {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        let query = call.parts.uri.query().unwrap_or_default();
        let is_moved = query.contains("moved=");
        // After a redirect, the URL itself contains the credential.
        if !is_moved {
            authorise(call.parts, call.settings)
                .map_err(|refusal| ErrorForm::OneLine.failure(&refusal))?;
        }
        let name = call.parts.uri.path().strip_prefix(PREFIX);
        let name = name.unwrap_or_default();
        let bare = name.strip_suffix(DOWNLOAD);
        let job = call.jobs.find(bare.unwrap_or(name));
        let job = job.ok_or_else(|| {
            let message = format!("You do not have permission to access the File {name}.");
            ErrorForm::OneLine.failure(&Refusal::not_found(message))
        })?;
        Ok(Self {
            model: format!("file/{}", job.model),
            host: host_of(call),
            is_download: bare.is_some(),
            is_moved,
            job,
        })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, _: &CallContext<'_>) -> Reply {
        let job = &self.job;
        if !self.is_download {
            return one_line(StatusCode::OK, &self.resource());
        }
        if job.has_word("redirect") && !self.is_moved {
            let place = format!("{}&moved=1", download_uri(&self.host, job));
            let mut reply = Reply::whole(StatusCode::FOUND, "text/plain", "");
            reply
                .headers
                .extend(HeaderValue::try_from(place).map(|place| (LOCATION, place)));
            return reply;
        }
        if job.has_word("broken") {
            return Reply::whole(StatusCode::OK, "video/mp4", "<html>not a film</html>");
        }
        Reply::whole(StatusCode::OK, "video/mp4", mp4(job.seconds, &job.prompt))
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &ErrorForm::OneLine
    }
}

impl File {
    fn resource(&self) -> Value {
        let id = &self.job.id;
        json!({
            "name": format!("files/{id}"),
            "mimeType": "video/mp4",
            "state": "ACTIVE",
            "uri": format!("http://{}{PREFIX}{id}", self.host),
            "downloadUri": download_uri(&self.host, &self.job),
            "source": "GENERATED",
        })
    }
}
