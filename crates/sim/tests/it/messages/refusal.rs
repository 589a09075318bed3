//! Tests that refusals of the Messages protocol have the vendor's error messages.

use super::harness::{request, weather_tools};
use crate::client::messages;
use serde_json::{Value, json};
use sim::Sim;

fn user(content: impl Into<Value>) -> Value {
    json!({"role": "user", "content": content.into()})
}

fn assistant(content: impl Into<Value>) -> Value {
    json!({"role": "assistant", "content": content.into()})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "get_weather", "input": {"city": "x"}})
}

fn done(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Invalid messages, and the text of the refusal.
fn wrong_histories() -> Vec<(Value, &'static str)> {
    let unanswered = "messages.1: `tool_use` ids were found without `tool_result` blocks \
                      immediately after: a. Each `tool_use` block must have a corresponding \
                      `tool_result` block in the next message.";
    vec![
        (json!([]), "messages: at least one message is required"),
        (
            json!([assistant(json!("Hi"))]),
            "messages: first message must use the \"user\" role",
        ),
        (
            json!([user(json!(""))]),
            "messages.0: all messages must have non-empty content except for the optional final assistant message",
        ),
        (
            json!([user(json!([text("")]))]),
            "messages: text content blocks must be non-empty",
        ),
        (
            json!([user(json!([text(" ")]))]),
            "messages: text content blocks must contain non-whitespace text",
        ),
        (
            json!([{"role": "king", "content": "x"}]),
            "messages.0.role: Input should be 'user', 'assistant' or 'system'",
        ),
        (
            json!([{"role": "user"}]),
            "messages.0.content: Field required",
        ),
        (
            json!([{"role": "user", "content": "x", "name": "y"}]),
            "messages.0.name: Extra inputs are not permitted",
        ),
        (
            json!([user(json!([{"type": "text"}]))]),
            "messages.0.content.0.text.text: Field required",
        ),
        (
            json!([user(json!("x")), assistant(json!("y "))]),
            "messages: final assistant content cannot end with trailing whitespace",
        ),
        (
            json!([
                user(json!("x")),
                assistant(json!([call("a")])),
                user(json!("y"))
            ]),
            unanswered,
        ),
        (
            json!([
                user(json!("x")),
                assistant(json!([call("a")])),
                user(json!([text("y"), done("a")]))
            ]),
            unanswered,
        ),
        (
            json!([user(json!([done("b")]))]),
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: b. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
        ),
        (
            json!([
                user(json!("x")),
                assistant(json!([call("a")])),
                user(json!([done("a"), done("a")]))
            ]),
            "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
        ),
        (
            json!([
                user(json!("x")),
                assistant(json!([call("a"), call("a")])),
                user(json!([done("a")]))
            ]),
            "messages: `tool_use` ids must be unique",
        ),
        (
            json!([
                user(json!("x")),
                assistant(json!([call("a.b")])),
                user(json!([done("a.b")]))
            ]),
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
        (
            json!([user(json!("x")), {"role": "system", "content": "y"}]),
            "messages: role 'system' is not supported on this model",
        ),
    ]
}

#[tokio::test]
async fn wrong_histories_are_refused() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    for (list, message) in wrong_histories() {
        let mut asked = request("", json!({"tools": weather_tools()}));
        asked["messages"] = list;
        let answer = messages(&sim, &asked).await;
        assert_eq!(answer.status, 400, "{asked}");
        assert_eq!(answer.json()["error"]["message"], message);
    }
    // Consecutive messages of the same role are merged, so text may follow a result.
    let mut asked = request("", json!({"tools": weather_tools()}));
    asked["messages"] = json!([
        user(json!("x")),
        assistant(json!([call("a")])),
        user(json!([done("a")])),
        user(json!("What is my name?"))
    ]);
    assert_eq!(messages(&sim, &asked).await.status, 200);
    asked["tools"] = json!([]);
    let answer = messages(&sim, &asked).await.json();
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("must define tools")
    );
}

/// Invalid members, and a part of the refusal.
fn wrong_members() -> Vec<(Value, &'static str)> {
    let forced = json!({"tools": weather_tools(), "tool_choice": {"type": "any"}, "thinking": {"type": "adaptive"}});
    vec![
        (json!({"max_tokens": null}), "max_tokens: Field required"),
        (
            json!({"max_tokens": 200_001}),
            "maximum allowed number of output tokens for sim-chat",
        ),
        (json!({"model": "missing"}), "model: missing"),
        (json!({"seed": 1}), "seed: Extra inputs are not permitted"),
        (json!({"temperature": 1.5}), "temperature: range: 0..1"),
        (json!({"stop_sequences": [" "]}), "non-whitespace"),
        (
            json!({"service_tier": "flex"}),
            "service_tier: Input should be 'auto' or 'standard_only'",
        ),
        (
            json!({"tool_choice": {"type": "auto"}}),
            "while providing tools",
        ),
        (
            json!({"tools": [{"name": "f"}]}),
            "tools.0.input_schema: Field required",
        ),
        (
            json!({"tools": [{"name": "f", "input_schema": {"type": "array"}}]}),
            "Input should be 'object'",
        ),
        (
            json!({"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}),
            "String should match pattern",
        ),
        (
            json!({"tools": weather_tools(), "tool_choice": {"type": "tool", "name": "x"}}),
            "'x' not found",
        ),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 1000}}),
            "greater than or equal to 1024",
        ),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 3000}}),
            "`max_tokens` must be greater",
        ),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 0.5}),
            "may only be set to 1",
        ),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "top_k": 5}),
            "`top_k` must be unset",
        ),
        (
            forced,
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
        (
            json!({"thinking": {"type": "sometimes"}}),
            "does not match any of the expected tags",
        ),
        (
            json!({"model": "sim-budget", "thinking": {"type": "adaptive"}}),
            "adaptive thinking is not supported",
        ),
        (
            json!({"model": "sim-budget", "output_config": {"effort": "low"}}),
            "does not support the effort",
        ),
        (
            json!({"model": "sim-fixed", "thinking": {"type": "enabled", "budget_tokens": 1024}}),
            "Use \\\"thinking.type.adaptive\\\"",
        ),
        (
            json!({"model": "sim-fixed", "temperature": 0.5}),
            "`temperature` is not supported",
        ),
        (
            json!({"model": "sim-fixed", "top_k": 5}),
            "`top_k` is not supported",
        ),
        (
            json!({"model": "sim-reason", "thinking": {"type": "disabled"}}),
            "is not supported for this model",
        ),
        (
            json!({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}),
            "additionalProperties",
        ),
        (
            json!({"thread": {"type": "create"}}),
            "thread_unsupported_request",
        ),
    ]
}

#[tokio::test]
async fn wrong_members_are_refused() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    for (changes, part) in wrong_members() {
        let answer = messages(&sim, &request("Hi", changes.clone())).await;
        assert!(
            answer.status >= 400 && answer.text().contains(part),
            "{changes}: {}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn what_a_family_takes_is_taken() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    for changes in [
        json!({"temperature": 0.5, "top_p": 0.9, "top_k": 5}),
        json!({"model": "sim-fixed", "temperature": 1, "top_p": 1}),
        json!({"model": "sim-fixed", "thinking": {"type": "disabled"}}),
        json!({"model": "sim-budget", "thinking": {"type": "enabled", "budget_tokens": 1024}}),
        json!({"thinking": {"type": "between_tools"}}),
        json!({"metadata": {"user_id": "u"}, "service_tier": null, "max_tokens": 0}),
    ] {
        let answer = messages(&sim, &request("Hi", changes.clone())).await;
        assert_eq!(answer.status, 200, "{changes}: {}", answer.text());
    }
    let mut late = request("Hi", json!({"model": "sim-fixed"}));
    late["messages"] = json!([{"role": "user", "content": "What are your instructions?"},
        {"role": "system", "content": "Be late."}]);
    assert!(messages(&sim, &late).await.text().contains("Be late."));
    late["messages"] =
        json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "He"}]);
    assert!(messages(&sim, &late).await.text().contains("prefill"));
    late["model"] = json!("sim-chat");
    assert_eq!(messages(&sim, &late).await.status, 200);
}
