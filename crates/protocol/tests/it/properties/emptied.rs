//! A turn of the model that would be empty after conversion is left out, because upstreams refuse
//! empty turns.

use protocol::canon::{Dropped, Target};
use protocol::convert::{read_request, write_request};
use protocol::{Dialect, Profile};
use serde_json::{Value, json};

use super::{MODEL, pairs};

/// Turns of the model, and results of its tools, that upstreams of other dialects cannot read, by name.
fn unreadable(dialect: Dialect) -> Vec<(&'static str, Value)> {
    match dialect {
        Dialect::Chat => vec![
            (
                "thought",
                json!({"role": "assistant", "content": null, "reasoning_content": "Hm."}),
            ),
            (
                "part",
                json!({"role": "assistant", "content": [{"type": "something_new", "x": 1}]}),
            ),
            (
                "audio",
                json!({"role": "assistant", "audio": {"id": "a_1"}}),
            ),
            ("nothing", json!({"role": "assistant", "content": ""})),
        ],
        Dialect::Responses => vec![
            (
                "thought",
                json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}),
            ),
            (
                "sealed",
                json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}),
            ),
            (
                "hosted",
                json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
            ),
            (
                "result",
                json!({"type": "custom_tool_call_output", "call_id": "c_1", "output": "Rain."}),
            ),
            (
                "approval",
                json!({"type": "mcp_approval_response", "approval_request_id": "a_1", "approve": true}),
            ),
            (
                "part",
                json!({"type": "message", "role": "assistant", "content": [{"type": "something_new"}]}),
            ),
            (
                "nothing",
                json!({"type": "message", "role": "assistant", "content": []}),
            ),
        ],
        Dialect::Messages => vec![
            (
                "thought",
                json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}]}),
            ),
            (
                "redacted",
                json!({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "EqQB"}]}),
            ),
            (
                "hosted",
                json!({"role": "assistant", "content": [{"type": "server_tool_use", "id": "st_1", "name": "web_search", "input": {}}]}),
            ),
            ("nothing", json!({"role": "assistant", "content": []})),
        ],
        Dialect::Generate => vec![
            (
                "thought",
                json!({"role": "model", "parts": [{"text": "Hm.", "thought": true}]}),
            ),
            (
                "signed",
                json!({"role": "model", "parts": [{"text": "Hm.", "thought": true, "thoughtSignature": "U0lH"}]}),
            ),
            (
                "code",
                json!({"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}]}),
            ),
            ("nothing", json!({"role": "model", "parts": []})),
        ],
        Dialect::Interactions => vec![
            (
                "thought",
                json!({"type": "thought", "summary": [{"type": "text", "text": "Hm."}]}),
            ),
            ("signed", json!({"type": "thought", "signature": "U0lH"})),
            (
                "hosted",
                json!({"type": "google_search_call", "id": "gs_1", "arguments": {}}),
            ),
            ("nothing", json!({"type": "model_output", "content": []})),
        ],
    }
}

/// A conversation that contains this turn of the model.
fn conversation(dialect: Dialect, turn: &Value) -> Value {
    let said = |text: &str| match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => {
            json!({"role": "user", "content": text})
        }
        Dialect::Generate => json!({"role": "user", "parts": [{"text": text}]}),
        Dialect::Interactions => {
            json!({"type": "user_input", "content": [{"type": "text", "text": text}]})
        }
    };
    let turns = json!([said("said-first"), turn, said("said-last")]);
    match dialect {
        Dialect::Chat => json!({"model": MODEL, "messages": turns}),
        Dialect::Messages => json!({"model": MODEL, "max_tokens": 100, "messages": turns}),
        Dialect::Responses | Dialect::Interactions => json!({"model": MODEL, "input": turns}),
        Dialect::Generate => json!({"contents": turns}),
    }
}

/// The turns that an upstream of this dialect receives.
fn turns(dialect: Dialect, body: &Value) -> &Vec<Value> {
    let list = match dialect {
        Dialect::Chat | Dialect::Messages => &body["messages"],
        Dialect::Responses | Dialect::Interactions => &body["input"],
        Dialect::Generate => &body["contents"],
    };
    list.as_array().unwrap()
}

fn is_of_user(turn: &Value) -> bool {
    turn["role"] == "user" || turn["type"] == "user_input"
}

#[test]
fn a_turn_of_which_nothing_is_left_is_gone() {
    for (from, to) in pairs().filter(|(from, to)| from != to) {
        for (name, turn) in unreadable(from) {
            let body = conversation(from, &turn).to_string();
            let request = read_request(from, body.as_bytes(), false).unwrap();
            let profile = Profile::default();
            let target = Target {
                upstream_model: "up-2026",
                public_model: MODEL,
                profile: &profile,
                output_limit: protocol::OutputLimit::default(),
                asks_for_usage: true,
            };
            let mut dropped = Dropped::new(from);
            let sent = write_request(to, &request, &target, &mut dropped).unwrap();
            let sent: Value = serde_json::from_slice(&sent).unwrap();
            let turns = turns(to, &sent);
            assert!(
                turns.iter().all(is_of_user),
                "{name} of {from} to {to}: {sent}"
            );
            let text = sent.to_string();
            assert!(text.contains("said-first") && text.contains("said-last"));
            // The roles alternate in these dialects.
            let alternates = matches!(to, Dialect::Messages | Dialect::Generate);
            assert!(
                !alternates || turns.len() == 1,
                "{name} of {from} to {to}: {sent}"
            );
            let is_listed = !dropped.is_empty();
            assert_eq!(is_listed, name != "nothing", "{name} of {from} to {to}");
        }
    }
}
