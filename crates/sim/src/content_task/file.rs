//! Serves the results of a task: a video and its last frame. Requests need a signature in the URL instead of a key.

use super::refusal;
use super::tasks::{Status, Task, TaskPath, task_path};
use crate::call_context::CallContext;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::{Reply, html_page};
use crate::video_file::{self, Container};
use http::StatusCode;

#[derive(Debug)]
pub(crate) struct File {
    task: Task,
    model: String,
    extension: String,
}

impl Protocol for File {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        let denied = || Reply::whole(StatusCode::FORBIDDEN, "application/xml", "<Error/>");
        let Some(TaskPath::File(name)) = task_path(call.parts.uri.path()) else {
            return Err(denied());
        };
        let (id, extension) = name.rsplit_once('.').ok_or_else(denied)?;
        let task = call.content_tasks.find(id).ok_or_else(denied)?;
        let query = call.parts.uri.query().unwrap_or_default();
        let is_signed = query == format!("X-Sim-Signature={}", task.signature);
        if !is_signed || task.status() != Status::Succeeded {
            return Err(denied());
        }
        Ok(Self {
            model: format!("file/{}", task.model),
            extension: extension.to_owned(),
            task,
        })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, _: &CallContext<'_>) -> Reply {
        let task = &self.task;
        let (seconds, words) = (task.seconds(), task.prompt());
        let (kind, mut bytes) = match self.extension.as_str() {
            "png" if task.has_word("bad-frame") => ("image/png", b"no picture".to_vec()),
            "png" => (
                "image/png",
                video_file::frame(seconds.saturating_sub(1), &words),
            ),
            _ if task.has_word("page") => return html_page(),
            "mov" => (
                "video/quicktime",
                video_file::file_in(Container::Mov, seconds, &words),
            ),
            _ => ("video/mp4", video_file::mp4(seconds, &words)),
        };
        if task.has_word("cut") && self.extension != "png" {
            bytes.truncate(bytes.len() / 2);
        }
        Reply::whole(StatusCode::OK, kind, bytes)
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &refusal::TaskErrors
    }
}
