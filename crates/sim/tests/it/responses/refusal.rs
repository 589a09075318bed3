//! Tests refusals of the Responses protocol.

use super::harness::request;
use crate::client::{responses, start};
use serde_json::{Value, json};

/// Invalid members, and the `param` and `code` of the refusal.
#[expect(clippy::too_many_lines, reason = "one table")]
fn wrong_members() -> Vec<(Value, Value, Value)> {
    let tool = |strict: bool| {
        json!([{"type": "function", "name": "f", "strict": strict,
        "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}])
    };
    let input = |content: Value| json!({"input": [{"role": "user", "content": content}]});
    let null = Value::Null;
    [
        (
            json!({"input": null}),
            "input",
            "missing_required_parameter",
        ),
        (json!({"input": 7}), "input", "invalid_type"),
        (
            json!({"input": [{"type": "song"}]}),
            "input[0].type",
            "invalid_value",
        ),
        (
            json!({"input": [{"content": "x"}]}),
            "input[0].type",
            "missing_required_parameter",
        ),
        (
            json!({"input": [{"role": "king", "content": "x"}]}),
            "input[0].role",
            "invalid_value",
        ),
        (
            input(json!([{"type": "output_text", "text": "x"}])),
            "input[0].content[0].type",
            "invalid_value",
        ),
        (
            input(json!([{"type": "input_image", "image_url": "x"}])),
            "input[0].content[0].image_url",
            "invalid_image_url",
        ),
        (
            input(json!([{"type": "input_image", "file_id": "f"}])),
            "input[0].content[0].file_id",
            "not_found",
        ),
        (json!({"model": "missing"}), "model", "model_not_found"),
        (
            json!({"max_output_tokens": 15}),
            "max_output_tokens",
            "integer_below_min_value",
        ),
        (
            json!({"temperature": 3}),
            "temperature",
            "decimal_above_max_value",
        ),
        (
            json!({"model": "sim-reason", "temperature": 0}),
            "temperature",
            "unsupported_parameter",
        ),
        (
            json!({"reasoning": {"effort": "huge"}}),
            "reasoning.effort",
            "invalid_value",
        ),
        (
            json!({"include": ["everything"]}),
            "include[0]",
            "invalid_value",
        ),
        (
            json!({"previous_response_id": "resp_1"}),
            "previous_response_id",
            "previous_response_not_found",
        ),
        (
            json!({"tools": tool(true)}),
            "tools[0].parameters",
            "invalid_function_parameters",
        ),
        (
            json!({"tools": [{"type": "function", "name": "a b"}]}),
            "tools[0].name",
            "invalid_value",
        ),
        (
            json!({"tools": [{"type": "magic"}]}),
            "tools[0].type",
            "invalid_value",
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "n"}}}),
            "text.format.schema",
            "missing_required_parameter",
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "n", "strict": true,
            "schema": {"type": "object"}}}}),
            "text.format.schema",
            "invalid_json_schema",
        ),
        (
            json!({"model": "sim-chat+strict", "stop": ["x"]}),
            "stop",
            "unknown_parameter",
        ),
    ]
    .into_iter()
    .map(|(changes, param, code)| (changes, json!(param), json!(code)))
    .chain([
        (
            json!({"tool_choice": "required"}),
            json!("tool_choice"),
            null.clone(),
        ),
        (
            json!({"tools": tool(false), "tool_choice": {"type": "function", "name": "g"}}),
            json!("tool_choice"),
            null.clone(),
        ),
        (
            json!({"text": {"format": {"type": "json_object"}}}),
            json!("input"),
            null.clone(),
        ),
        (
            json!({"conversation": "conv_1"}),
            json!("conversation"),
            null.clone(),
        ),
        (
            json!({"input": [{"type": "item_reference", "id": "rs_1"}]}),
            json!("input"),
            null,
        ),
    ])
    .collect()
}

#[tokio::test]
async fn wrong_members_are_refused() {
    let sim = start().await;
    for (changes, param, code) in wrong_members() {
        let answer = responses(&sim, &request("Hi", changes.clone())).await;
        assert!((400..=404).contains(&answer.status), "{changes}");
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["param"], &error["code"]),
            (&param, &code),
            "{changes}: {error}"
        );
        assert_eq!(error["type"], "invalid_request_error");
    }
}
