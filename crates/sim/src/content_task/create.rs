//! Creates a task.

use super::refusal;
use super::tasks::{Status, Task, Tasks};
use crate::call_context::CallContext;
use crate::date;
use crate::openai;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Create {
    request: Value,
    model: String,
    tasks: Arc<Tasks>,
}

impl Protocol for Create {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        refusal::authorise(call)?;
        let request = openai::parse(call.body).map_err(|_| refusal::invalid("body"))?;
        let model = openai::model_of(&request).map_err(|_| refusal::invalid("model"))?;
        Ok(Self {
            model: model.to_owned(),
            request,
            tasks: Arc::clone(call.content_tasks),
        })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        if context.name == "missing" {
            let message = format!("The model or endpoint {} does not exist.", context.name);
            let code = "InvalidEndpointOrModel.NotFound";
            return refusal::failure(StatusCode::NOT_FOUND, code, &message, "");
        }
        if let Err(param) = self.check() {
            return refusal::invalid(param);
        }
        let mut seed = context.seed.clone();
        let mut digits = date::iso_8601(context.created);
        digits.retain(|sign| sign.is_ascii_digit());
        let id = format!("cgt-{digits}-{}", seed.letters(5));
        let signature = seed.letters(32);
        let request = self.request.clone();
        self.tasks.add(Task::new(
            id.clone(),
            context.name,
            request,
            context.created,
            signature,
        ));
        Reply::json(StatusCode::OK, json!({ "id": id }).to_string())
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &refusal::TaskErrors
    }
}

impl Create {
    /// Checks the request. The error is the name of a parameter that the vendor refuses. The vendor also refuses
    /// parameters that only a gateway defines, such as `callback_url`.
    fn check(&self) -> Result<(), &'static str> {
        let request = &self.request;
        for name in ["callback_url", "priority", "service_tier"] {
            if !request[name].is_null() {
                return Err(name);
            }
        }
        let items = request["content"].as_array();
        let items = items.filter(|items| !items.is_empty()).ok_or("content")?;
        for item in items {
            self.check_item(item)?;
        }
        let duration = &request["duration"];
        let length = duration.as_i64();
        if !duration.is_null() && !length.is_some_and(|it| it == -1 || (2..=30).contains(&it)) {
            return Err("duration");
        }
        Ok(())
    }

    fn check_item(&self, item: &Value) -> Result<(), &'static str> {
        match item["type"].as_str() {
            Some("text") if item["text"].is_string() => Ok(()),
            Some(kind @ ("image_url" | "video_url" | "audio_url"))
                if item[kind]["url"].is_string() =>
            {
                Ok(())
            }
            // A draft can be used only after it has succeeded, and only under the vendor's id.
            Some("draft_task") => {
                let id = item["draft_task"]["id"].as_str().unwrap_or_default();
                let draft = self.tasks.find(id).ok_or("content.draft_task.id")?;
                let is_made = draft.status() == Status::Succeeded;
                (is_made && draft.request["draft"] == true)
                    .then_some(())
                    .ok_or("content.draft_task.id")
            }
            _ => Err("content"),
        }
    }
}
