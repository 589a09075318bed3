//! Polls and lists tasks.

use super::refusal;
use super::tasks::{Status, Task, TaskPath, Tasks, task_path};
use crate::call_context::CallContext;
use crate::percent::decoded;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use http::StatusCode;
use http::header::HOST;
use serde_json::{Value, json};
use std::sync::Arc;

const PAGE_SIZE: usize = 10;

#[derive(Debug)]
pub(crate) struct Poll {
    id: String,
    model: String,
    host: String,
    tasks: Arc<Tasks>,
}

impl Protocol for Poll {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        refusal::authorise(call)?;
        let Some(TaskPath::One(id)) = task_path(call.parts.uri.path()) else {
            return Err(refusal::no_such_task());
        };
        let task = call.content_tasks.find(id);
        let task = task.ok_or_else(refusal::no_such_task)?;
        Ok(Self {
            model: format!("poll/{}", task.model),
            id: task.id,
            host: host(call),
            tasks: Arc::clone(call.content_tasks),
        })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        match self.tasks.poll(&self.id, context.created) {
            Some(task) => Reply::json(StatusCode::OK, shown(&task, &self.host).to_string()),
            None => refusal::no_such_task(),
        }
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &refusal::TaskErrors
    }
}

/// A page of tasks, newest first.
pub(crate) fn list(call: &IncomingCall<'_>) -> Reply {
    if let Err(refused) = refusal::authorise(call) {
        return refused;
    }
    let mut tasks = call.content_tasks.all();
    let (mut page, mut size) = (1_usize, PAGE_SIZE);
    let mut ids = Vec::new();
    let query = call.parts.uri.query().unwrap_or_default();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let value = decoded(value);
        match name {
            "page_num" => page = value.parse().unwrap_or(1).max(1),
            "page_size" => size = value.parse().unwrap_or(PAGE_SIZE),
            "filter.status" => tasks.retain(|task| task.status().as_str() == value),
            "filter.model" => tasks.retain(|task| task.model == value),
            "filter.task_ids" => ids.push(value),
            _ => {}
        }
    }
    if !ids.is_empty() {
        tasks.retain(|task| ids.contains(&task.id));
    }
    let host = host(call);
    let items = tasks
        .iter()
        .skip((page - 1).saturating_mul(size))
        .take(size);
    let items: Vec<Value> = items.map(|task| shown(task, &host)).collect();
    let list = json!({ "items": items, "total": tasks.len() });
    Reply::json(StatusCode::OK, list.to_string())
}

fn host(call: &IncomingCall<'_>) -> String {
    let host = call.parts.headers.get(HOST);
    let host = host.and_then(|host| host.to_str().ok());
    host.unwrap_or_default().to_owned()
}

/// A task in the vendor's form. It contains the vendor's own names, so that a test notices a gateway that passes them
/// on.
fn shown(task: &Task, host: &str) -> Value {
    let status = task.status();
    let mut shown = json!({
        "id": task.id,
        "model": format!("{}-260128", task.model),
        "status": status.as_str(),
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "service_tier": "default",
        "priority": 0,
        "execution_expires_after": task.request["execution_expires_after"].as_u64().unwrap_or(172_800),
    });
    match status {
        Status::Failed => shown["error"] = error(task),
        Status::Succeeded => add_result(&mut shown, task, host),
        Status::Queued | Status::Running | Status::Expired | Status::Cancelled => {}
    }
    shown
}

fn error(task: &Task) -> Value {
    let (code, message) = if task.has_word("refuse") {
        (
            "OutputVideoSensitiveContentDetected.PolicyViolation",
            "The request failed because the output video may contain sensitive information.",
        )
    } else {
        ("InternalServiceError", "The service encountered an error.")
    };
    let message = format!(
        "{message} Model {}-260128. Request id: 02170000471100000000000000000000",
        task.model
    );
    json!({ "code": code, "message": message })
}

fn add_result(shown: &mut Value, task: &Task, host: &str) {
    let request = &task.request;
    let container = request["output_format"].as_str().unwrap_or("mp4");
    let file = |extension: &str| {
        let (id, signature) = (&task.id, &task.signature);
        format!(
            "http://{host}/v1/contents/generations/files/{id}.{extension}?X-Sim-Signature={signature}"
        )
    };
    shown["error"] = Value::Null;
    shown["content"] = json!({ "video_url": file(container) });
    if request["return_last_frame"] == true {
        shown["content"]["last_frame_url"] = file("png").into();
    }
    if !task.has_word("unmetered") {
        let tokens = task.tokens();
        shown["usage"] = json!({ "completion_tokens": tokens, "total_tokens": tokens });
        if request["tools"].is_array() {
            shown["usage"]["tool_usage"] = json!({ "web_search": 1 });
        }
    }
    let (of_length, length) = match request["frames"].as_u64() {
        Some(frames) => ("frames", frames),
        None => ("duration", task.seconds()),
    };
    shown[of_length] = length.into();
    shown["seed"] = request["seed"]
        .as_i64()
        .filter(|seed| *seed >= 0)
        .unwrap_or(48_213)
        .into();
    shown["resolution"] = task.resolution().into();
    let ratio = request["ratio"]
        .as_str()
        .filter(|ratio| *ratio != "adaptive");
    shown["ratio"] = ratio.unwrap_or("16:9").into();
    shown["framespersecond"] = 24.into();
    shown["generate_audio"] = (request["generate_audio"] != false).into();
    shown["draft"] = (request["draft"] == true).into();
    let draft = &request["content"][0]["draft_task"]["id"];
    if !draft.is_null() {
        shown["draft_task_id"] = draft.clone();
    }
    for name in ["safety_identifier", "tools"] {
        if !request[name].is_null() {
            shown[name] = request[name].clone();
        }
    }
}
