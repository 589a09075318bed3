//! Builds requests of Interactions, and joins its streams as a client does.

use crate::client::{Answer, KEY, call, with};
use serde_json::{Value, json};
use sim::Sim;

pub(crate) async fn interact(sim: &Sim, request: &Value) -> Answer {
    let head = format!("x-goog-api-key: {KEY}\r\ncontent-type: application/json\r\n");
    let body = request.to_string();
    call(sim, "POST", "/v1beta/interactions", &head, body.as_bytes()).await
}

pub(crate) async fn stream(sim: &Sim, request: &Value) -> Answer {
    interact(sim, &with(request.clone(), json!({"stream": true}))).await
}

pub(crate) fn asking(model: &str, question: &str) -> Value {
    json!({"model": model, "input": question})
}

/// The data of each event, without the end mark. Checks that the data repeats the event's name.
pub(crate) fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    assert!(text.is_empty() || text.ends_with("\n\n"), "{text}");
    text.split_terminator("\n\n")
        .filter(|event| *event != "event: done\ndata: [DONE]")
        .map(|event| {
            let (name, data) = event.split_once("\ndata: ").expect("a named event");
            let name = name.strip_prefix("event: ").expect("a name first");
            let data: Value = serde_json::from_str(data).unwrap_or_else(|_| json!(data));
            assert!(data.is_string() || data["event_type"] == name, "{event}");
            data
        })
        .collect()
}

/// Joins the steps of a stream as a client would. Also returns the finished interaction.
pub(crate) fn folded(events: &[Value]) -> (Vec<Value>, Value) {
    let mut steps: Vec<Value> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut open = false;
    let mut completed = Value::Null;
    for event in events {
        let name = event["event_type"].as_str().unwrap();
        if let Some(index) = event["index"].as_u64() {
            let last = steps.len() as u64 - u64::from(name != "step.start");
            assert_eq!(index, last, "one step at a time");
            assert_eq!(open, name != "step.start", "{event}");
        }
        match name {
            "step.start" => {
                open = true;
                steps.push(event["step"].clone());
                texts.push(String::new());
            }
            "step.delta" => {
                let delta = &event["delta"];
                let step = steps.last_mut().unwrap();
                let text = texts.last_mut().unwrap();
                match delta["type"].as_str().unwrap() {
                    "text" => text.push_str(delta["text"].as_str().unwrap()),
                    "thought_summary" => text.push_str(delta["content"]["text"].as_str().unwrap()),
                    "thought_signature" => step["signature"] = delta["signature"].clone(),
                    "arguments_delta" => text.push_str(delta["arguments"].as_str().unwrap()),
                    "text_annotation_delta" => step["annotations"] = delta["annotations"].clone(),
                    "image" => step["content"] = json!([delta]),
                    other => panic!("{other}"),
                }
            }
            "step.stop" => {
                open = false;
                close(steps.last_mut().unwrap(), texts.last().unwrap());
            }
            "interaction.completed" => completed = event["interaction"].clone(),
            _ => {}
        }
    }
    (steps, completed)
}

pub(crate) fn close(step: &mut Value, text: &str) {
    if text.is_empty() {
        return;
    }
    let kind = step["type"].as_str().unwrap().to_owned();
    let name = match kind.as_str() {
        "function_call" => {
            step["arguments"] = serde_json::from_str(text).unwrap();
            return;
        }
        "thought" => "summary",
        _ => "content",
    };
    let early = step[name][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let mut list = vec![json!({"type": "text", "text": early + text})];
    list.extend(
        step[name]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| item["type"] == "image")
            .cloned(),
    );
    step[name] = list.into();
}

pub(crate) fn tools() -> Value {
    let tool = |name: &str| {
        json!({"type": "function", "name": name, "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}})
    };
    json!([tool("get_weather"), tool("get_time")])
}

pub(crate) fn user(text: &str) -> Value {
    json!({"type": "user_input", "content": [{"type": "text", "text": text}]})
}
