//! Continuity without state: clients of every dialect send back the signatures that a model needs
//! before its tool calls, and the model receives them.

use protocol::canon::{Block, Dropped, Opaque, Response, ResponseBlock, Stop, Target};
use protocol::convert::{convert_answer, read_request, write_request};
use protocol::native::{read_head, read_named_head};
use protocol::{Dialect, Profile, Thinking};
use serde_json::{Value, json};

use super::{MODEL, context, pairs, upstream_answer};

/// A request of this dialect that asks the model to think.
fn question(dialect: Dialect) -> Value {
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    match dialect {
        Dialect::Chat => json!({
            "model": MODEL, "messages": [{"role": "user", "content": "go"}], "reasoning_effort": "high",
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
        }),
        Dialect::Responses => json!({
            "model": MODEL, "input": [{"role": "user", "content": "go"}], "reasoning": {"effort": "high"},
            "tools": [{"type": "function", "name": "f", "parameters": schema, "strict": false}],
        }),
        Dialect::Messages => json!({
            "model": MODEL, "messages": [{"role": "user", "content": "go"}], "max_tokens": 9000,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "tools": [{"name": "f", "input_schema": schema}],
        }),
        Dialect::Generate => json!({
            "contents": [{"role": "user", "parts": [{"text": "go"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH"}},
            "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}],
        }),
        Dialect::Interactions => json!({
            "model": MODEL, "input": [{"type": "user_input", "content": [{"type": "text", "text": "go"}]}],
            "generation_config": {"thinking_level": "high"},
            "tools": [{"type": "function", "name": "f", "parameters": schema}],
        }),
    }
}

/// Continues as a client of this dialect does: sends back the answer, followed by the results of
/// the tools.
fn continue_conversation(dialect: Dialect, request: &mut Value, answer: &Value) {
    match dialect {
        Dialect::Chat => {
            let mut message = answer["choices"][0]["message"].clone();
            // Few clients keep members that they do not know. All of them keep ids.
            message.as_object_mut().unwrap().remove("reasoning_content");
            let messages = request["messages"].as_array_mut().unwrap();
            let mut results = Vec::new();
            for call in message["tool_calls"].as_array_mut().unwrap() {
                call.as_object_mut().unwrap().remove("extra_content");
                results.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "42"}));
            }
            messages.push(message);
            messages.extend(results);
        }
        Dialect::Responses => {
            let input = request["input"].as_array_mut().unwrap();
            for item in answer["output"].as_array().unwrap() {
                input.push(item.clone());
            }
            for call in answer["output"].as_array().unwrap() {
                if call["type"] == "function_call" {
                    let id = &call["call_id"];
                    input.push(
                        json!({"type": "function_call_output", "call_id": id, "output": "42"}),
                    );
                }
            }
        }
        Dialect::Messages => {
            let messages = request["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": answer["content"]}));
            let calls = answer["content"].as_array().unwrap().iter();
            let calls = calls.filter(|block| block["type"] == "tool_use");
            let results: Vec<_> = calls
                .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "42"}))
                .collect();
            messages.push(json!({"role": "user", "content": results}));
        }
        Dialect::Generate => {
            let contents = request["contents"].as_array_mut().unwrap();
            let content = &answer["candidates"][0]["content"];
            contents.push(content.clone());
            let parts = content["parts"].as_array().unwrap().iter();
            let results: Vec<_> = parts
                .filter_map(|part| part.get("functionCall"))
                .map(|call| {
                    json!({"functionResponse":
                        {"id": call["id"], "name": call["name"], "response": {"output": "42"}}})
                })
                .collect();
            contents.push(json!({"role": "user", "parts": results}));
        }
        Dialect::Interactions => {
            let input = request["input"].as_array_mut().unwrap();
            let steps = answer["steps"].as_array().unwrap();
            input.extend(steps.iter().cloned());
            for call in steps.iter().filter(|step| step["type"] == "function_call") {
                input.push(json!({"type": "function_result", "call_id": call["id"],
                    "name": call["name"], "result": "42"}));
            }
        }
    }
}

/// An answer with a thought and two tool calls, signed as in its dialect.
fn signed_answer(upstream: Dialect, turn: usize) -> Response {
    let opaque = || {
        Some(Opaque {
            origin: upstream,
            model: "".into(),
            text: signature(turn).into(),
        })
    };
    let on_call = upstream == Dialect::Generate;
    let whole_block = |kind, text: String, opaque| ResponseBlock {
        kind,
        text,
        opaque,
        citations: Vec::new(),
        logprobs: Vec::new(),
    };
    let call = |number: usize| Block::ToolCall {
        id: format!("call_{turn}_{number}"),
        name: "f".to_owned(),
    };
    Response {
        blocks: vec![
            whole_block(
                Block::Thought,
                format!("thought {turn}"),
                opaque().filter(|_| !on_call),
            ),
            whole_block(
                call(0),
                "{\"x\":1}".to_owned(),
                opaque().filter(|_| on_call),
            ),
            whole_block(call(1), "{}".to_owned(), None),
        ],
        stop: Stop::ToolCalls,
        usage: None,
    }
}

/// A signature in base64, because some clients decode it and encode it again.
fn signature(turn: usize) -> String {
    format!("U0lHTkFUVVJFLW9mLXR1cm4{turn}")
}

fn profile(upstream: Dialect) -> Profile {
    Profile {
        reasoning: Some(true),
        thinking: Some(match upstream {
            Dialect::Messages => Thinking::Adaptive,
            _ => Thinking::Level,
        }),
        max_output_tokens: Some(20_000),
        ..Profile::default()
    }
}

/// The request that the upstream receives.
fn send(caller: Dialect, upstream: Dialect, request: &Value, model: &str) -> Value {
    let body = request.to_string();
    match caller {
        Dialect::Generate => read_named_head(&body.clone().into(), MODEL, false),
        _ => read_head(caller, &body.clone().into()),
    }
    .unwrap_or_else(|failure| panic!("{caller}: {failure} {request}"));
    let request = read_request(caller, body.as_bytes(), false)
        .unwrap_or_else(|failure| panic!("{caller}: {failure} {request}"));
    let profile = profile(upstream);
    let target = Target {
        upstream_model: "up-2026",
        public_model: model,
        profile: &profile,
        output_limit: protocol::OutputLimit::default(),
        asks_for_usage: true,
    };
    let mut dropped = Dropped::new(caller);
    let sent = write_request(upstream, &request, &target, &mut dropped)
        .unwrap_or_else(|failure| panic!("{caller} to {upstream}: {failure}"));
    serde_json::from_slice(&sent).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(strings).collect(),
        Value::Object(members) => members.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_tool_loop_of_three_turns_keeps_its_signatures() {
    for caller in Dialect::ALL {
        for upstream in Dialect::ALL {
            if upstream == Dialect::Chat {
                continue;
            }
            let mut request = question(caller);
            for turn in 0..3 {
                let answer = upstream_answer(upstream, &signed_answer(upstream, turn));
                let answer =
                    convert_answer(upstream, caller, &answer, &context(caller, "ours", MODEL))
                        .unwrap();
                let answer = serde_json::from_slice(&answer.pieces.into_bytes()).unwrap();
                continue_conversation(caller, &mut request, &answer);
                let sent = send(caller, upstream, &request, MODEL);
                let texts = strings(&sent);
                for earlier in 0..=turn {
                    let expected = signature(earlier);
                    let count = texts.iter().filter(|text| **text == expected).count();
                    assert_eq!(count, 1, "{caller} to {upstream}, turn {turn}: {sent}");
                }
                // The upstream receives none of our additions.
                assert!(!texts.iter().any(|text| text.contains("_gw1_")), "{sent}");
            }
            // Another model must not receive the signatures. Within one dialect they have no mark of
            // their model, so that is not checked.
            let sent = send(caller, upstream, &request, "maker/other");
            let seen = caller != upstream && strings(&sent).contains(&signature(0));
            assert!(!seen, "{caller} to {upstream}: {sent}");
        }
    }
}

/// A client may send back a signature that an upstream of its own dialect made. Upstreams of other
/// dialects do not receive it.
#[test]
fn a_signature_without_a_mark_stays_in_its_dialect() {
    const SIGNATURE: &str = "RXFRQnNpZ25lZA";
    for (caller, upstream) in pairs().filter(|(caller, upstream)| caller != upstream) {
        let mut request = question(caller);
        let answer = match caller {
            Dialect::Chat => json!({"choices": [{"message": {"role": "assistant", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}]}),
            Dialect::Responses => json!({"output": [
                {"type": "reasoning", "summary": [], "encrypted_content": SIGNATURE},
                {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}]}),
            Dialect::Messages => json!({"content": [
                {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE},
                {"type": "tool_use", "id": "call_1", "name": "f", "input": {}}]}),
            Dialect::Generate => json!({"candidates": [{"content": {"role": "model", "parts": [
                {"functionCall": {"id": "call_1", "name": "f", "args": {}}, "thoughtSignature": SIGNATURE}]}}]}),
            Dialect::Interactions => json!({"steps": [
                {"type": "thought", "signature": SIGNATURE},
                {"type": "function_call", "id": "call_1", "name": "f", "arguments": {}}]}),
        };
        continue_conversation(caller, &mut request, &answer);
        if caller == Dialect::Chat {
            let extra = json!({"google": {"thought_signature": SIGNATURE}});
            request["messages"][1]["tool_calls"][0]["extra_content"] = extra;
        }
        assert!(request.to_string().contains(SIGNATURE), "{request}");
        let sent = send(caller, upstream, &request, MODEL);
        assert!(
            !sent.to_string().contains(SIGNATURE),
            "{caller} to {upstream}: {sent}"
        );
    }
}
