//! Creates an operation.

use crate::call_context::CallContext;
use crate::catalog;
use crate::google::{ErrorForm, Field, Refusal, Spelling, authorise, one_line};
use crate::percent::decoded;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use crate::video_a::{Job, Jobs};
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

const ACTION: &str = ":predictLongRunning";
const BODY: &[&str] = &["instances", "parameters", "labels", "webhook_config"];
const INSTANCE: &[&str] = &["image", "last_frame", "prompt", "reference_images", "video"];
const PARAMETERS: &[&str] = &[
    "aspect_ratio",
    "duration_seconds",
    "enhance_prompt",
    "negative_prompt",
    "person_generation",
    "resolution",
    "sample_count",
    "seed",
];
const IMAGE: &[&str] = &["bytes_base64_encoded", "mime_type"];
/// The default length of a video in seconds.
const SECONDS: i64 = 8;

/// Whether a path is that of a request to create an operation.
pub(crate) fn is_target(path: &str) -> bool {
    model_of(path).is_some()
}

fn model_of(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/v1beta/models/")?;
    let model = rest.strip_suffix(ACTION)?;
    (!model.is_empty()).then(|| decoded(model))
}

#[derive(Debug)]
pub(crate) struct Create {
    request: Value,
    model: String,
    jobs: Arc<Jobs>,
}

impl Protocol for Create {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        authorise(call.parts, call.settings)
            .map_err(|refusal| ErrorForm::OneLine.failure(&refusal))?;
        let request = serde_json::from_slice(call.body);
        let request = request.map_err(|_| {
            ErrorForm::OneLine.failure(&Refusal::invalid("Invalid JSON payload received."))
        })?;
        Ok(Self {
            request,
            model: model_of(call.parts.uri.path()).unwrap_or_default(),
            jobs: Arc::clone(call.jobs),
        })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let (prompt, seconds) = match self.check(context.name) {
            Ok(order) => order,
            Err(refusal) => return ErrorForm::OneLine.failure(&refusal),
        };
        let mut seed = context.seed.clone();
        // File names consist of lower-case letters and digits.
        let id = seed.letters(24).to_ascii_lowercase();
        let name = format!("models/{}/operations/{id}", context.name);
        self.jobs.add(Job {
            id,
            model: context.name.to_owned(),
            prompt,
            seconds,
            polls: 0,
        });
        one_line(StatusCode::OK, &json!({ "name": name }))
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &ErrorForm::OneLine
    }
}

impl Create {
    /// Checks the request. Returns the prompt and the length in seconds.
    fn check(&self, model: &str) -> Result<(String, u64), Refusal> {
        if !catalog::exists(model) {
            return Err(Refusal::no_such_model(model));
        }
        let body = Field::object(&self.request, "", Spelling::Both, BODY)?;
        let instances = body.children("instances", INSTANCE)?;
        let [instance] = instances.as_slice() else {
            return Err(Refusal::invalid("Exactly one instance is required."));
        };
        let prompt = instance.text("prompt")?.unwrap_or_default();
        if let Some(image) = instance.child("image", IMAGE)? {
            image.required_text("bytes_base64_encoded")?;
            image.required_text("mime_type")?;
        } else if prompt.is_empty() {
            return Err(Refusal::invalid("A prompt or an image is required."));
        }
        let mut seconds = SECONDS;
        if let Some(parameters) = body.child("parameters", PARAMETERS)? {
            seconds = parameters
                .integer("duration_seconds", 4, 8)?
                .unwrap_or(seconds);
            parameters.integer("sample_count", 1, 1)?;
            let finest = parameters.word("resolution", &["720p", "1080p", "4k"])?;
            if seconds % 2 == 1 || (seconds < 8 && !matches!(finest, None | Some("720p"))) {
                let message = format!("The value `{seconds}` for `durationSeconds` is invalid.");
                return Err(Refusal::invalid(message));
            }
            parameters.word("aspect_ratio", &["16:9", "9:16"])?;
            parameters.word(
                "person_generation",
                &["allow_all", "allow_adult", "dont_allow"],
            )?;
        }
        let seconds = u64::try_from(seconds).unwrap_or_default();
        Ok((prompt.to_owned(), seconds))
    }
}
