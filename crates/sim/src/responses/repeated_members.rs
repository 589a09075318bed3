//! Collects the members of a request that the response repeats.

use crate::catalog;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The repeated members, which are serialized as members of the response.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(super) struct RepeatedMembers {
    members: Map<String, Value>,
}

impl RepeatedMembers {
    /// Collects the members. `tools` are the tools as the simulator has read them.
    pub(super) fn of(request: &Value, tools: Vec<Value>, name: &str) -> Self {
        let reasons = catalog::reasons(name);
        let defaults = [
            ("background", json!(false)),
            ("frequency_penalty", json!(0.0)),
            ("instructions", Value::Null),
            ("max_output_tokens", Value::Null),
            ("max_tool_calls", Value::Null),
            ("metadata", json!({})),
            ("parallel_tool_calls", json!(true)),
            ("presence_penalty", json!(0.0)),
            ("previous_response_id", Value::Null),
            ("prompt_cache_key", Value::Null),
            ("prompt_cache_retention", Value::Null),
            ("safety_identifier", Value::Null),
            ("store", json!(true)),
            ("temperature", json!(1.0)),
            ("tool_choice", json!("auto")),
            ("top_logprobs", json!(0)),
            ("top_p", json!(1.0)),
            ("truncation", json!("disabled")),
            ("user", Value::Null),
        ];
        let given = |name: &str| request.get(name).filter(|value| !value.is_null()).cloned();
        let mut members: Map<String, Value> = defaults
            .into_iter()
            .map(|(name, default)| (name.to_owned(), given(name).unwrap_or(default)))
            .collect();
        members.insert("service_tier".to_owned(), json!("default"));
        members.insert("tools".to_owned(), Value::Array(tools));
        let effort = if reasons {
            json!("medium")
        } else {
            Value::Null
        };
        let reasoning = merge_over(
            json!({"effort": effort, "summary": null}),
            given("reasoning"),
        );
        members.insert("reasoning".to_owned(), reasoning);
        let text = merge_over(
            json!({"format": {"type": "text"}, "verbosity": "medium"}),
            given("text"),
        );
        members.insert("text".to_owned(), text);
        Self { members }
    }
}

/// Replaces defaults with the given members.
fn merge_over(mut defaults: Value, given: Option<Value>) -> Value {
    if let (Value::Object(defaults), Some(Value::Object(given))) = (&mut defaults, given) {
        defaults.extend(given.into_iter().filter(|(_, value)| !value.is_null()));
    }
    defaults
}
