//! The five text dialects as their clients see them. This file shares no code with the gateway.

use serde_json::{Value, json};

use super::answer::{Answer, assert_openai_error};
use super::request::Request;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Chat,
    Responses,
    Messages,
    Generate,
    Interactions,
}

impl Dialect {
    pub(crate) const ALL: [Self; 5] = [
        Self::Chat,
        Self::Responses,
        Self::Messages,
        Self::Generate,
        Self::Interactions,
    ];

    /// The name of the dialect in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Generate => "generate",
            Self::Interactions => "interactions",
        }
    }

    /// The dialect that an endpoint path belongs to.
    pub(crate) fn of_path(path: &str) -> Self {
        if path.starts_with("/v1/chat/") {
            Self::Chat
        } else if path.starts_with("/v1/responses") {
            Self::Responses
        } else if path.starts_with("/v1/messages") {
            Self::Messages
        } else if path.contains("/interactions") {
            Self::Interactions
        } else {
            Self::Generate
        }
    }

    /// The path and query with which this dialect calls a model.
    pub(crate) fn target(self, model: &str, stream: bool) -> String {
        match (self, stream) {
            (Self::Chat, _) => "/v1/chat/completions".to_owned(),
            (Self::Responses, _) => "/v1/responses".to_owned(),
            (Self::Messages, _) => "/v1/messages".to_owned(),
            (Self::Generate, false) => format!("/v1beta/models/{model}:generateContent"),
            (Self::Generate, true) => {
                format!("/v1beta/models/{model}:streamGenerateContent?alt=sse")
            }
            (Self::Interactions, _) => "/v1beta/interactions".to_owned(),
        }
    }

    /// A call of a model. Adds the model and whether to stream, which the body must not contain.
    pub(crate) fn call(self, secret: &str, model: &str, mut body: Value, stream: bool) -> Request {
        if self != Self::Generate {
            body["model"] = model.into();
            if stream {
                body["stream"] = true.into();
            }
        }
        let request = Request::post(&self.target(model, stream)).json(&body);
        match self {
            Self::Chat | Self::Responses => request.bearer(secret),
            Self::Messages => request
                .header("x-api-key", secret)
                .header("anthropic-version", "2023-06-01"),
            Self::Generate | Self::Interactions => request.header("x-goog-api-key", secret),
        }
    }

    /// A body with one user turn.
    pub(crate) fn ask(self, prompt: &str) -> Value {
        match self {
            Self::Chat => json!({ "messages": [{ "role": "user", "content": prompt }] }),
            Self::Responses | Self::Interactions => json!({ "input": prompt }),
            Self::Messages => json!({
                "max_tokens": 4096,
                "messages": [{ "role": "user", "content": prompt }],
            }),
            Self::Generate => json!({
                "contents": [{ "role": "user", "parts": [{ "text": prompt }] }],
            }),
        }
    }

    /// Declarations of functions that take no arguments.
    pub(crate) fn tools(self, names: &[&str]) -> Value {
        let schema = json!({ "type": "object", "properties": {} });
        let declared = names.iter().map(|name| match self {
            Self::Chat => {
                json!({ "type": "function", "function": { "name": name, "parameters": schema } })
            }
            Self::Responses | Self::Interactions => {
                json!({ "type": "function", "name": name, "parameters": schema })
            }
            Self::Messages => json!({ "name": name, "input_schema": schema }),
            Self::Generate => json!({ "name": name, "parametersJsonSchema": schema }),
        });
        let declared: Vec<Value> = declared.collect();
        match self {
            Self::Generate => json!({ "tools": [{ "functionDeclarations": declared }] }),
            _ => json!({ "tools": declared }),
        }
    }

    /// Status and code of an error. Panics if the envelope is not that of this dialect.
    #[track_caller]
    pub(crate) fn failure(self, answer: &Answer) -> (u16, String) {
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let code = self.failure_code(&answer.json());
        if self == Self::Generate {
            assert_eq!(answer.json()["error"]["code"], answer.status());
        }
        (answer.status(), code)
    }

    /// The code in an error body. Panics if the body is not an error of this dialect.
    #[track_caller]
    pub(crate) fn failure_code(self, body: &Value) -> String {
        let error = &body["error"];
        let text = |value: &Value| {
            let text = value.as_str().unwrap_or_default().to_owned();
            assert!(!text.is_empty(), "an empty member in {body}");
            text
        };
        text(&error["message"]);
        match self {
            Self::Chat | Self::Responses => {
                assert_openai_error(error);
                text(&error["code"])
            }
            Self::Messages => {
                assert_eq!(body["type"], "error", "{body}");
                text(&error["type"]);
                text(&error["code"])
            }
            Self::Generate => {
                text(&error["status"]);
                let message = text(&error["message"]);
                let (code, _) = message.split_once(": ").expect("the code in the message");
                code.to_owned()
            }
            Self::Interactions => text(&error["code"]),
        }
    }
}
