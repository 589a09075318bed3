//! Builds requests of Generate Content, and joins its streams as a client does.

use crate::client::{Answer, KEY, call};
use serde_json::{Value, json};
use sim::Sim;

pub(crate) async fn generate(sim: &Sim, model: &str, request: &Value) -> Answer {
    let path = format!("/v1beta/models/{model}:generateContent");
    google(sim, &path, request).await
}

pub(crate) async fn stream(sim: &Sim, model: &str, request: &Value) -> Answer {
    let path = format!("/v1beta/models/{model}:streamGenerateContent?alt=sse");
    google(sim, &path, request).await
}

pub(crate) async fn google(sim: &Sim, path: &str, request: &Value) -> Answer {
    let head = format!("x-goog-api-key: {KEY}\r\ncontent-type: application/json\r\n");
    call(sim, "POST", path, &head, request.to_string().as_bytes()).await
}

/// The events of a stream, which end with CRLF.
pub(crate) fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    assert!(text.is_empty() || text.ends_with("\r\n\r\n"), "{text}");
    text.split_terminator("\r\n\r\n")
        .map(|event| event.strip_prefix("data: ").expect("a data event"))
        .map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data)))
        .collect()
}

/// The texts or thoughts of a stream's first candidate, joined as a client would join them.
pub(crate) fn joined(events: &[Value], thought: bool) -> String {
    events
        .iter()
        .filter_map(|event| event.pointer("/candidates/0/content/parts")?.as_array())
        .flatten()
        .filter(|part| part["thought"].as_bool().unwrap_or(false) == thought)
        .filter_map(|part| part["text"].as_str())
        .collect()
}

pub(crate) fn asking(question: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": question}]}]})
}

pub(crate) fn weather_tools() -> Value {
    let tool = |name: &str| {
        json!({"name": name, "parametersJsonSchema": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}})
    };
    json!([{"functionDeclarations": [tool("get_weather"), tool("get_time")]}])
}

/// Adds the model's content item and the results of its calls to a conversation.
pub(crate) fn answered(mut request: Value, content: &Value, results: &[Value]) -> Value {
    let contents = request["contents"].as_array_mut().unwrap();
    contents.push(content.clone());
    contents.push(json!({"role": "user", "parts": results}));
    request
}

pub(crate) fn result(name: &str, id: &Value, text: &str) -> Value {
    json!({"functionResponse": {"name": name, "id": id, "response": {"output": text}}})
}
