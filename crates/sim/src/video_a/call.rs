//! Creates a task.

use super::jobs::{Job, Jobs};
use crate::call_context::CallContext;
use crate::openai::{self, Refusal};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

/// The default length of a video in seconds.
const SECONDS: u64 = 8;

#[derive(Debug)]
pub(crate) struct Create {
    request: Value,
    model: String,
    path: String,
    jobs: Arc<Jobs>,
}

impl Protocol for Create {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        openai::authorise(&call.parts.headers, call.settings)
            .and_then(|()| openai::parse(call.body))
            .and_then(|request| {
                let model = openai::model_of(&request)?.to_owned();
                Ok(Self {
                    request,
                    model,
                    path: call.parts.uri.path().to_owned(),
                    jobs: Arc::clone(call.jobs),
                })
            })
            .map_err(|refusal| openai::failure(&refusal))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        if let Err(refusal) = self.check() {
            return openai::failure(&refusal);
        }
        let mut seed = context.seed.clone();
        let id = format!("vid-{}", seed.letters(24));
        self.jobs.add(Job {
            id: id.clone(),
            model: context.name.to_owned(),
            prompt: self.request["prompt"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            seconds: self.request["duration"].as_u64().unwrap_or(SECONDS),
            polls: 0,
        });
        Reply::json(StatusCode::OK, json!({ "request_id": id }).to_string())
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &openai::JsonErrors
    }
}

impl Create {
    /// Applies the vendor's checks, and refuses members that only a gateway defines.
    fn check(&self) -> Result<(), Refusal> {
        for name in ["callback_url", "seconds"] {
            if self.request.get(name).is_some() {
                return Err(Refusal::invalid(format!("unknown field {name}")).param(name));
            }
        }
        let duration = &self.request["duration"];
        let seconds = duration.as_u64();
        if !duration.is_null() && !seconds.is_some_and(|seconds| (1..=15).contains(&seconds)) {
            let message = "duration must be between 1 and 15";
            return Err(Refusal::invalid(message).param("duration"));
        }
        let needs_video = !self.path.ends_with("/generations");
        if needs_video && !self.request["video"].is_object() {
            return Err(Refusal::invalid("video is required").param("video"));
        }
        Ok(())
    }
}
