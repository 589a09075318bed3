//! Variants of a dialect's whole request, for outcomes that the request itself does not show.

use protocol::Dialect;
use protocol::canon::Opaque;
use serde_json::{Value, json};

use super::super::MODEL;
use super::super::paths::{Node, WHOLE};

/// The whole request of this dialect. In the request of Chat, the only plain tool result belongs to a call
/// that no upstream receives. So another call with a plain result is added.
pub(super) fn request(dialect: Dialect) -> Value {
    let mut body = WHOLE[dialect.as_str()].clone();
    if dialect == Dialect::Chat {
        let messages = body["messages"].as_array_mut().unwrap();
        let result = |message: &Value| message["role"] == "tool";
        let at = messages.iter().position(result).unwrap();
        let calls = messages[at - 1]["tool_calls"].as_array_mut().unwrap();
        calls.push(json!({
            "id": "call_plain", "type": "function", "function": {"name": "f", "arguments": "{}"},
        }));
        let plain = json!({"role": "tool", "tool_call_id": "call_plain", "content": "said-plain"});
        messages.insert(at, plain);
    }
    body
}

/// The body with a tool choice of `required` where these members say `auto`. `None` if one of them
/// says something else.
pub(super) fn with_required(body: &Value, nodes: &[&Node]) -> Option<Value> {
    let mut other = body.clone();
    for node in nodes {
        let mode = other.pointer_mut(&node.pointer)?;
        *mode = match (mode.as_str()?, node.path.as_str()) {
            ("AUTO", _) => "ANY",
            ("auto", path) if path.starts_with("generation_config.") => "any",
            ("auto", _) => "required",
            _ => return None,
        }
        .into();
    }
    Some(other)
}

/// The body with every signature wrapped as the gateway wraps signatures of the dialect `upstream`
/// for clients of another dialect.
pub(super) fn with_ours(body: &Value, upstream: Dialect) -> Value {
    let mut other = body.clone();
    wrap_signatures(&mut other, upstream);
    other
}

fn wrap_signatures(value: &mut Value, upstream: Dialect) {
    match value {
        Value::Array(items) => {
            for item in items {
                wrap_signatures(item, upstream);
            }
        }
        Value::Object(members) => {
            let is_redacted = members
                .get("type")
                .is_some_and(|it| it == "redacted_thinking");
            for (name, value) in members {
                let is_signature = match name.as_str() {
                    "signature" | "thought_signature" | "thoughtSignature"
                    | "encrypted_content" => true,
                    "data" => is_redacted,
                    _ => false,
                };
                match value {
                    Value::String(text) if is_signature => {
                        let opaque = Opaque {
                            origin: upstream,
                            model: MODEL.into(),
                            text: text.as_str().into(),
                        };
                        *text = opaque.wrap();
                    }
                    value => wrap_signatures(value, upstream),
                }
            }
        }
        _ => {}
    }
}
