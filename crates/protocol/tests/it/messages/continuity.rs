//! A tool loop continues with data that only the model can read, for clients of every dialect.

use std::sync::Arc;

use protocol::canon::{AnswerContext, Dropped, Request, Target};
use protocol::convert::{convert_answer, read_request, write_request};
use protocol::{Dialect, Profile, Thinking};
use serde_json::{Value, json};

fn context() -> AnswerContext {
    AnswerContext {
        id: "id_1".into(),
        model: "maker/m".into(),
        created: 1_760_000_000,
        input_tokens: 40,
        request: Arc::new(Request::default()),
    }
}

/// The upstream's answer as the client receives it.
fn answered(upstream: Dialect, caller: Dialect, answer: &Value) -> Value {
    let answer = answer.to_string();
    let answer = convert_answer(upstream, caller, answer.as_bytes(), &context()).unwrap();
    serde_json::from_slice(&answer.pieces.into_bytes()).unwrap()
}

/// The client's request as the upstream receives it.
fn asked(caller: Dialect, upstream: Dialect, body: &Value, model: &str) -> Value {
    let profile = Profile {
        thinking: Some(Thinking::Level),
        ..Profile::default()
    };
    let target = Target {
        upstream_model: "up",
        public_model: model,
        profile: &profile,
        output_limit: protocol::OutputLimit::default(),
        asks_for_usage: true,
    };
    let request = read_request(caller, body.to_string().as_bytes(), false).unwrap();
    let mut dropped = Dropped::new(caller);
    let written = write_request(upstream, &request, &target, &mut dropped).unwrap();
    serde_json::from_slice(&written).unwrap()
}

/// The next request of a client that received `answer` and ran the tool.
fn next_request(caller: Dialect, answer: &Value) -> Value {
    match caller {
        Dialect::Chat => {
            let message = &answer["choices"][0]["message"];
            json!({"model": "maker/m", "messages": [
                {"role": "user", "content": "Weather?"},
                message,
                {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "21C"},
            ]})
        }
        Dialect::Messages => {
            let content = answer["content"].as_array().unwrap();
            let call = content
                .iter()
                .find(|block| block["type"] == "tool_use")
                .unwrap();
            json!({"model": "maker/m", "max_tokens": 9, "messages": [
                {"role": "user", "content": "Weather?"},
                {"role": "assistant", "content": content},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": call["id"], "content": "21C"},
                ]},
            ]})
        }
        Dialect::Generate => {
            let content = &answer["candidates"][0]["content"];
            let parts = content["parts"].as_array().unwrap();
            let call = parts
                .iter()
                .find_map(|part| part.get("functionCall"))
                .unwrap();
            json!({"contents": [
                {"role": "user", "parts": [{"text": "Weather?"}]},
                content,
                {"role": "user", "parts": [{"functionResponse": {
                    "id": call["id"], "name": "f", "response": {"output": "21C"},
                }}]},
            ]})
        }
        Dialect::Interactions => {
            let steps = answer["steps"].as_array().unwrap();
            let call = steps
                .iter()
                .find(|step| step["type"] == "function_call")
                .unwrap();
            let mut input = vec![json!({"type": "user_input", "content": "Weather?"})];
            input.extend(steps.iter().cloned());
            input.push(json!({
                "type": "function_result", "call_id": call["id"], "name": "f", "result": "21C",
            }));
            json!({"model": "maker/m", "input": input})
        }
        Dialect::Responses => {
            let items = answer["output"].as_array().unwrap();
            let call = items
                .iter()
                .find(|item| item["type"] == "function_call")
                .unwrap();
            let mut input = vec![json!({"role": "user", "content": "Weather?"})];
            input.extend(items.iter().cloned());
            input.push(json!({
                "type": "function_call_output", "call_id": call["call_id"], "output": "21C",
            }));
            json!({"model": "maker/m", "input": input})
        }
    }
}

#[test]
fn thinking_comes_back_to_the_model_through_every_dialect() {
    let answer = json!({
        "id": "msg_theirs", "type": "message", "role": "assistant", "model": "up",
        "content": [
            {"type": "thinking", "thinking": "Let me see.", "signature": "EqQBCg=="},
            {"type": "redacted_thinking", "data": "EmwKAh=="},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 2},
    });
    for caller in [
        Dialect::Chat,
        Dialect::Responses,
        Dialect::Generate,
        Dialect::Interactions,
    ] {
        let converted = answered(Dialect::Messages, caller, &answer);
        let body = next_request(caller, &converted);
        let sent = asked(caller, Dialect::Messages, &body, "maker/m");
        let turn = sent["messages"][1]["content"].as_array().unwrap();
        assert_eq!(turn[0]["signature"], "EqQBCg==", "{caller}: {sent}");
        assert_eq!(turn[1], answer["content"][1], "{caller}: {sent}");
        assert_eq!(turn.last().unwrap()["input"], json!({"a": 1}), "{caller}");
        let id = &turn.last().unwrap()["id"];
        assert_eq!(
            &sent["messages"][2]["content"][0]["tool_use_id"], id,
            "{caller}"
        );
        // Another model never receives the data.
        let sent = asked(caller, Dialect::Messages, &body, "maker/other");
        let turn = sent["messages"][1]["content"].as_array().unwrap();
        assert_eq!(turn.len(), 1, "{caller}: {sent}");
    }
}

#[test]
fn signatures_of_other_vendors_come_back_through_this_dialect() {
    let generated = json!({
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
            {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "U0lH+/=="},
        ]}}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3},
    });
    let converted = answered(Dialect::Generate, Dialect::Messages, &generated);
    let body = next_request(Dialect::Messages, &converted);
    let sent = asked(Dialect::Messages, Dialect::Generate, &body, "maker/m");
    let part = &sent["contents"][1]["parts"][0];
    assert_eq!(part["thoughtSignature"], "U0lH+/==", "{sent}");
    assert_eq!(part["functionCall"]["args"], json!({"a": 1}));

    let interaction = json!({
        "id": "", "status": "requires_action", "model": "up", "steps": [
            {"type": "thought", "signature": "U0lH", "summary": [{"type": "text", "text": "Hm."}]},
            {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
        ],
        "usage": {"total_input_tokens": 1, "total_output_tokens": 2},
    });
    let converted = answered(Dialect::Interactions, Dialect::Messages, &interaction);
    let body = next_request(Dialect::Messages, &converted);
    let sent = asked(Dialect::Messages, Dialect::Interactions, &body, "maker/m");
    let steps = sent["input"].as_array().unwrap();
    let thought = steps.iter().find(|step| step["type"] == "thought").unwrap();
    assert_eq!(thought["signature"], "U0lH", "{sent}");

    let response = json!({
        "id": "resp_theirs", "object": "response", "status": "completed", "model": "up", "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        ],
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    });
    let converted = answered(Dialect::Responses, Dialect::Messages, &response);
    let body = next_request(Dialect::Messages, &converted);
    let sent = asked(Dialect::Messages, Dialect::Responses, &body, "maker/m");
    let items = sent["input"].as_array().unwrap();
    let reasoning = items
        .iter()
        .find(|item| item["type"] == "reasoning")
        .unwrap();
    assert_eq!(reasoning["encrypted_content"], "gAAAA", "{sent}");
}
