//! Assembles streams as the vendors' clients do.

use protocol::Dialect;
use serde_json::{Map, Value, json};

/// The data of each event.
pub(super) fn frames(stream: &str) -> Vec<Value> {
    assert!(stream.is_empty() || stream.ends_with("\n\n"), "{stream}");
    let frames = stream.split_terminator("\n\n").map(|frame| {
        let (_, data) = frame.split_once("data: ").unwrap();
        serde_json::from_str(data).unwrap_or_else(|_| json!(data))
    });
    frames.filter(|data| data != "[DONE]").collect()
}

pub(super) fn assemble(dialect: Dialect, stream: &str) -> Value {
    let frames = frames(stream);
    match dialect {
        Dialect::Chat => chat(frames),
        Dialect::Responses => responses(frames),
        Dialect::Messages => messages(frames),
        Dialect::Interactions => interactions(frames),
        Dialect::Generate => {
            let [chunk] = frames.try_into().unwrap();
            chunk
        }
    }
}

/// The part of a whole answer that a stream can contain.
pub(super) fn expected(dialect: Dialect, mut answer: Value) -> Value {
    match dialect {
        Dialect::Chat => {
            answer["object"] = json!("chat.completion");
            for choice in answer["choices"].as_array_mut().unwrap() {
                drop_nulls(choice);
                drop_nulls(&mut choice["message"]);
                let calls = choice["message"].get_mut("tool_calls");
                for call in calls.and_then(Value::as_array_mut).into_iter().flatten() {
                    call.as_object_mut().unwrap().remove("index");
                }
            }
            drop_nulls(&mut answer);
        }
        Dialect::Messages => drop_nulls(&mut answer),
        // Each further text begins a step of its own.
        Dialect::Interactions => {
            let steps = answer["steps"].take();
            let steps = steps.as_array().unwrap().iter().flat_map(split_step);
            answer["steps"] = steps.collect();
        }
        Dialect::Responses | Dialect::Generate => {}
    }
    answer
}

fn drop_nulls(object: &mut Value) {
    if let Value::Object(members) = object {
        members.retain(|_, value| !value.is_null());
    }
}

fn split_step(step: &Value) -> Vec<Value> {
    let mut steps = Vec::new();
    let is_output = step["type"] == "model_output";
    let Some(content) = step["content"]
        .as_array()
        .filter(|content| is_output && !content.is_empty())
    else {
        return vec![step.clone()];
    };
    let mut parts: Vec<Value> = Vec::new();
    let mut close = |parts: &mut Vec<Value>| {
        let mut part = step.clone();
        part["content"] = std::mem::take(parts).into();
        steps.push(part);
    };
    for part in content {
        let has_text = parts.iter().any(|part| part["type"] == "text");
        if has_text && part["type"] == "text" {
            close(&mut parts);
        }
        let mut part = part.clone();
        if part["annotations"] == json!([]) {
            part.as_object_mut().unwrap().remove("annotations");
        }
        parts.push(part);
    }
    close(&mut parts);
    steps
}

fn extend(object: &mut Map<String, Value>, name: &str, piece: &Value) {
    match (object.get_mut(name), piece) {
        (Some(Value::String(before)), Value::String(piece)) => before.push_str(piece),
        (Some(Value::Array(before)), Value::Array(piece)) => before.extend(piece.iter().cloned()),
        _ => {
            object.insert(name.to_owned(), piece.clone());
        }
    }
}

fn chat(frames: Vec<Value>) -> Value {
    let mut answer = Map::new();
    let mut choices: Vec<Value> = Vec::new();
    for mut chunk in frames {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        for sent_choice in chunk["choices"].take().as_array_mut().unwrap() {
            let index = sent_choice["index"].clone();
            let known = choices.iter().position(|choice| choice["index"] == index);
            let at = known.unwrap_or_else(|| {
                choices.push(json!({"index": index, "message": {}}));
                choices.len() - 1
            });
            let choice = choices[at].as_object_mut().unwrap();
            let message = choice["message"].as_object_mut().unwrap();
            for (name, piece) in sent_choice["delta"].take().as_object().unwrap() {
                if name != "tool_calls" {
                    extend(message, name, piece);
                    continue;
                }
                let calls = message.entry("tool_calls").or_insert_with(|| json!([]));
                for (at, call) in piece.as_array().unwrap().iter().enumerate() {
                    let mut call = call.clone();
                    assert_eq!(
                        call.as_object_mut().unwrap().remove("index"),
                        Some(json!(at))
                    );
                    calls.as_array_mut().unwrap().push(call);
                }
            }
            for (name, value) in sent_choice.as_object().unwrap() {
                if name != "delta" && !value.is_null() {
                    choice.insert(name.clone(), value.clone());
                }
            }
        }
        for (name, value) in chunk.as_object().unwrap() {
            if name != "choices" && !value.is_null() {
                let before = answer.insert(name.clone(), value.clone());
                assert!(before.is_none_or(|before| before == *value), "{name}");
            }
        }
    }
    answer.insert("object".to_owned(), json!("chat.completion"));
    answer.insert("choices".to_owned(), choices.into());
    answer.into()
}

fn messages(frames: Vec<Value>) -> Value {
    let mut message = Value::Null;
    let mut partial = String::new();
    for mut event in frames {
        let kind = event["type"].as_str().unwrap().to_owned();
        if kind == "message_start" {
            message = event["message"].take();
            continue;
        }
        if kind == "message_delta" {
            for (name, value) in event["delta"].as_object().unwrap() {
                message[name] = value.clone();
            }
            message["usage"] = event["usage"].take();
            continue;
        }
        if kind == "message_stop" {
            continue;
        }
        let content = message["content"].as_array_mut().unwrap();
        if kind == "content_block_start" {
            assert_eq!(event["index"], content.len());
            content.push(event["content_block"].take());
            partial.clear();
            continue;
        }
        assert_eq!(event["index"], content.len() - 1);
        let block = content.last_mut().unwrap().as_object_mut().unwrap();
        if kind == "content_block_stop" {
            if !partial.is_empty() {
                let input = serde_json::from_str(&partial).unwrap();
                block.insert("input".to_owned(), input);
            }
            continue;
        }
        let delta = event["delta"].take();
        match delta["type"].as_str().unwrap() {
            "text_delta" => extend(block, "text", &delta["text"]),
            "thinking_delta" => extend(block, "thinking", &delta["thinking"]),
            "signature_delta" => extend(block, "signature", &delta["signature"]),
            "citations_delta" => extend(block, "citations", &json!([delta["citation"]])),
            "input_json_delta" => partial.push_str(delta["partial_json"].as_str().unwrap()),
            other => panic!("{other} is unknown"),
        }
    }
    drop_nulls(&mut message);
    message
}

/// The last event contains the whole answer. The events before it contain the same output.
fn responses(frames: Vec<Value>) -> Value {
    let mut output: Vec<Value> = Vec::new();
    let mut last = Value::Null;
    for (number, mut event) in frames.into_iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
        let kind = event["type"].as_str().unwrap();
        let kind = kind.strip_prefix("response.").unwrap().to_owned();
        if event["response"].is_object() {
            last = event["response"].take();
            if kind == "created" || kind == "in_progress" {
                assert_eq!(
                    (&last["output"], &last["status"]),
                    (&json!([]), &json!("in_progress"))
                );
            }
            continue;
        }
        if kind == "output_item.added" {
            assert_eq!(event["output_index"], output.len());
            output.push(event["item"].take());
            continue;
        }
        assert_eq!(event["output_index"], output.len() - 1);
        let item = output.last_mut().unwrap();
        if kind == "output_item.done" {
            for member in ["content", "summary", "arguments", "input"] {
                assert_eq!(item.get(member), event["item"].get(member), "{event}");
            }
            *item = event["item"].take();
            continue;
        }
        assert_eq!(event["item_id"], item["id"]);
        let parts = if kind.starts_with("reasoning_summary") {
            "summary"
        } else {
            "content"
        };
        let index = event[format!("{parts}_index")]
            .as_u64()
            .map(|index| usize::try_from(index).unwrap());
        if kind.ends_with("part.added") {
            assert_eq!(index, Some(item[parts].as_array().unwrap().len()));
            item[parts]
                .as_array_mut()
                .unwrap()
                .push(event["part"].take());
        } else if kind.ends_with("part.done") {
            item[parts][index.unwrap()] = event["part"].take();
        } else if kind == "output_text.annotation.added" {
            let part = item[parts][index.unwrap()].as_object_mut().unwrap();
            extend(part, "annotations", &json!([event["annotation"]]));
        } else if let Some(kind) = kind.strip_suffix(".delta") {
            let (object, member) = match kind {
                "function_call_arguments" => (item, "arguments"),
                "custom_tool_call_input" => (item, "input"),
                "refusal" => (&mut item[parts][index.unwrap()], "refusal"),
                _ => (&mut item[parts][index.unwrap()], "text"),
            };
            extend(object.as_object_mut().unwrap(), member, &event["delta"]);
            if let Some(logprobs) = event.get("logprobs").filter(|it| **it != json!([])) {
                object["logprobs"] = logprobs.clone();
            }
        } else {
            let (object, member) = match kind.as_str() {
                "function_call_arguments.done" => (item, "arguments"),
                "custom_tool_call_input.done" => (item, "input"),
                "refusal.done" => (&mut item[parts][index.unwrap()], "refusal"),
                _ => (&mut item[parts][index.unwrap()], "text"),
            };
            assert_eq!(event[member], object[member]);
        }
    }
    assert_eq!(last["output"], Value::from(output));
    last
}

fn interactions(frames: Vec<Value>) -> Value {
    let mut steps: Vec<Value> = Vec::new();
    let mut last = Value::Null;
    let mut partial = String::new();
    for mut event in frames {
        let kind = event["event_type"].as_str().unwrap().to_owned();
        if kind.starts_with("interaction.") {
            if kind != "interaction.status_update" {
                last = event["interaction"].take();
            }
            continue;
        }
        if kind == "step.start" {
            assert_eq!(event["index"], steps.len());
            steps.push(event["step"].take());
            partial.clear();
            continue;
        }
        assert_eq!(event["index"], steps.len() - 1);
        let step = steps.last_mut().unwrap().as_object_mut().unwrap();
        if kind == "step.stop" {
            if !partial.is_empty() {
                let arguments = serde_json::from_str(&partial).unwrap();
                step.insert("arguments".to_owned(), arguments);
            }
            continue;
        }
        let delta = event["delta"].take();
        match delta["type"].as_str().unwrap() {
            "arguments_delta" => partial.push_str(delta["arguments"].as_str().unwrap()),
            "thought_summary" => extend(step, "summary", &json!([delta["content"]])),
            "thought_signature" => extend(step, "signature", &delta["signature"]),
            "text_annotation_delta" => {
                let content = step["content"].as_array_mut().unwrap();
                let part = content.last_mut().unwrap().as_object_mut().unwrap();
                extend(part, "annotations", &delta["annotations"]);
            }
            _ => extend(step, "content", &json!([delta])),
        }
    }
    last["steps"] = steps.into();
    last
}
