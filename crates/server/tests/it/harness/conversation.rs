//! A conversation with tools as the client libraries conduct it: the history contains what the libraries keep of an
//! answer and send back, and nothing else.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::answer::Answer;
use super::chat_calls::with;
use super::dialect::Dialect;

/// The history of one caller.
#[derive(Debug)]
pub(crate) struct Conversation {
    dialect: Dialect,
    tools: Value,
    history: Vec<Value>,
}

/// The content of an answer: tool calls or text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerContent {
    /// The model calls these functions: id and name of each.
    Calls(Vec<(String, String)>),
    Text(String),
}

impl Conversation {
    pub(crate) fn begin(dialect: Dialect, prompt: &str, tools: &[&str]) -> Self {
        let user = match dialect {
            Dialect::Chat | Dialect::Responses | Dialect::Messages => {
                json!({ "role": "user", "content": prompt })
            }
            Dialect::Generate => json!({ "role": "user", "parts": [{ "text": prompt }] }),
            Dialect::Interactions => {
                json!({ "type": "user_input", "content": [{ "type": "text", "text": prompt }] })
            }
        };
        Self {
            dialect,
            tools: dialect.tools(tools),
            history: vec![user],
        }
    }

    /// The body of the next call.
    pub(crate) fn body(&self) -> Value {
        let history = self.history.clone();
        let body = match self.dialect {
            Dialect::Chat => json!({ "messages": history }),
            // Callers who want the reasoning to continue across turns must request its encrypted form.
            Dialect::Responses => {
                json!({ "input": history, "include": ["reasoning.encrypted_content"] })
            }
            Dialect::Messages => json!({ "messages": history, "max_tokens": 8192 }),
            Dialect::Generate => json!({ "contents": history }),
            Dialect::Interactions => json!({ "input": history, "store": false }),
        };
        with(body, &self.tools)
    }

    /// Adds an answer to the history as the library does.
    pub(crate) fn add_answer(&mut self, answer: &Answer, stream: bool) -> AnswerContent {
        let turns = if stream {
            self.turns_of_stream(&events(answer.text()))
        } else {
            self.turns_of_answer(&answer.json())
        };
        let content = self.content_of(&turns);
        self.history.extend(turns);
        content
    }

    /// The turns that a library keeps of a whole answer.
    fn turns_of_answer(&self, answer: &Value) -> Vec<Value> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        match self.dialect {
            Dialect::Chat => {
                let message = &answer["choices"][0]["message"];
                vec![json!({
                    "role": "assistant",
                    "content": message["content"],
                    "tool_calls": message["tool_calls"],
                })]
            }
            Dialect::Responses => list(&answer["output"]),
            Dialect::Messages => {
                vec![json!({ "role": "assistant", "content": answer["content"] })]
            }
            Dialect::Generate => vec![reencoded(answer["candidates"][0]["content"].clone())],
            Dialect::Interactions => list(&answer["steps"]),
        }
    }

    /// The turns that a library accumulates from a stream.
    fn turns_of_stream(&self, events: &[Value]) -> Vec<Value> {
        match self.dialect {
            Dialect::Chat => vec![chat_message(events)],
            Dialect::Responses => {
                let last = events.last().expect("an end");
                assert_eq!(last["type"], "response.completed", "{last}");
                self.turns_of_answer(&last["response"])
            }
            Dialect::Messages => {
                vec![json!({ "role": "assistant", "content": blocks(events) })]
            }
            // One turn for each chunk, as the library's chat helper keeps them.
            Dialect::Generate => {
                let content = |event: &Value| reencoded(event["candidates"][0]["content"].clone());
                events.iter().map(content).collect()
            }
            Dialect::Interactions => steps(events),
        }
    }

    fn content_of(&self, turns: &[Value]) -> AnswerContent {
        let parts: Vec<&Value> = match self.dialect {
            Dialect::Chat | Dialect::Responses | Dialect::Interactions => turns.iter().collect(),
            Dialect::Messages => turns
                .iter()
                .flat_map(|turn| items(&turn["content"]))
                .collect(),
            Dialect::Generate => turns
                .iter()
                .flat_map(|turn| items(&turn["parts"]))
                .collect(),
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut calls = Vec::new();
        let mut spoken = String::new();
        for part in parts {
            match self.dialect {
                Dialect::Chat => {
                    for call in items(&part["tool_calls"]) {
                        calls.push((text(&call["id"]), text(&call["function"]["name"])));
                    }
                    spoken.push_str(&text(&part["content"]));
                }
                Dialect::Responses => match part["type"].as_str() {
                    Some("function_call") => {
                        calls.push((text(&part["call_id"]), text(&part["name"])));
                    }
                    Some("message") => spoken.push_str(&text(&part["content"][0]["text"])),
                    _ => {}
                },
                Dialect::Messages => match part["type"].as_str() {
                    Some("tool_use") => calls.push((text(&part["id"]), text(&part["name"]))),
                    Some("text") => spoken.push_str(&text(&part["text"])),
                    _ => {}
                },
                Dialect::Generate => match part.get("functionCall") {
                    Some(call) => calls.push((text(&call["id"]), text(&call["name"]))),
                    None if part["thought"] != true => spoken.push_str(&text(&part["text"])),
                    None => {}
                },
                Dialect::Interactions => match part["type"].as_str() {
                    Some("function_call") => calls.push((text(&part["id"]), text(&part["name"]))),
                    Some("model_output") => {
                        for content in items(&part["content"]) {
                            spoken.push_str(&text(&content["text"]));
                        }
                    }
                    _ => {}
                },
            }
        }
        if calls.is_empty() {
            AnswerContent::Text(spoken)
        } else {
            AnswerContent::Calls(calls)
        }
    }

    /// Adds the results of function calls to the history.
    pub(crate) fn add_tool_results(&mut self, calls: &[(String, String)], result: &str) {
        let results = calls.iter().map(|(id, name)| match self.dialect {
            Dialect::Chat => json!({ "role": "tool", "tool_call_id": id, "content": result }),
            Dialect::Responses => {
                json!({ "type": "function_call_output", "call_id": id, "output": result })
            }
            Dialect::Messages => {
                json!({ "type": "tool_result", "tool_use_id": id, "content": result })
            }
            Dialect::Generate => json!({
                "functionResponse": { "id": id, "name": name, "response": { "result": result } },
            }),
            Dialect::Interactions => json!({
                "type": "function_result",
                "call_id": id,
                "name": name,
                "result": [{ "type": "text", "text": result }],
            }),
        });
        let results: Vec<Value> = results.collect();
        match self.dialect {
            Dialect::Messages => self
                .history
                .push(json!({ "role": "user", "content": results })),
            Dialect::Generate => self
                .history
                .push(json!({ "role": "user", "parts": results })),
            _ => self.history.extend(results),
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn events(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect()
}

/// The Python library decodes a signature to bytes and encodes it again in the URL-safe alphabet.
fn reencoded(mut content: Value) -> Value {
    let parts = content.get_mut("parts").and_then(Value::as_array_mut);
    for part in parts.into_iter().flatten() {
        if let Some(Value::String(signature)) = part.get_mut("thoughtSignature") {
            *signature = signature.replace('+', "-").replace('/', "_");
        }
    }
    content
}

fn chat_message(events: &[Value]) -> Value {
    let mut content = String::new();
    let mut calls: BTreeMap<u64, (String, String, String)> = BTreeMap::new();
    for delta in events.iter().map(|event| &event["choices"][0]["delta"]) {
        content.push_str(delta["content"].as_str().unwrap_or_default());
        for call in items(&delta["tool_calls"]) {
            let (id, name, arguments) = calls.entry(call["index"].as_u64().unwrap()).or_default();
            id.push_str(call["id"].as_str().unwrap_or_default());
            name.push_str(call["function"]["name"].as_str().unwrap_or_default());
            arguments.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
        }
    }
    let calls = calls.into_values().map(|(id, name, arguments)| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "id": id, "type": "function", "function": function })
    });
    let calls: Vec<Value> = calls.collect();
    if calls.is_empty() {
        json!({ "role": "assistant", "content": content })
    } else {
        json!({ "role": "assistant", "content": content, "tool_calls": calls })
    }
}

fn blocks(events: &[Value]) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    let mut arguments = String::new();
    let append = |member: &mut Value, piece: &Value| {
        let text = member.as_str().unwrap_or_default().to_owned();
        *member = (text + piece.as_str().unwrap()).into();
    };
    for event in events {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                arguments.clear();
                blocks.push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let (block, delta) = (blocks.last_mut().unwrap(), &event["delta"]);
                match delta["type"].as_str().unwrap() {
                    "text_delta" => append(&mut block["text"], &delta["text"]),
                    "thinking_delta" => append(&mut block["thinking"], &delta["thinking"]),
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    "input_json_delta" => {
                        arguments.push_str(delta["partial_json"].as_str().unwrap());
                    }
                    other => panic!("an unknown delta: {other}"),
                }
            }
            "content_block_stop" if !arguments.is_empty() => {
                blocks.last_mut().unwrap()["input"] = serde_json::from_str(&arguments).unwrap();
            }
            _ => {}
        }
    }
    blocks
}

fn steps(events: &[Value]) -> Vec<Value> {
    let mut steps: Vec<Value> = Vec::new();
    let mut arguments = String::new();
    for event in events {
        match event["event_type"].as_str().unwrap() {
            "step.start" => {
                arguments.clear();
                steps.push(event["step"].clone());
            }
            "step.delta" => {
                let (step, delta) = (steps.last_mut().unwrap(), &event["delta"]);
                match delta["type"].as_str().unwrap() {
                    "text" => append_item(step, "content", delta.clone()),
                    "thought_summary" => append_item(step, "summary", delta["content"].clone()),
                    "thought_signature" => step["signature"] = delta["signature"].clone(),
                    "arguments_delta" => arguments.push_str(delta["arguments"].as_str().unwrap()),
                    other => panic!("an unknown delta: {other}"),
                }
            }
            "step.stop" if !arguments.is_empty() => {
                steps.last_mut().unwrap()["arguments"] = serde_json::from_str(&arguments).unwrap();
            }
            _ => {}
        }
    }
    steps
}

/// Appends an item to a list member of a step.
fn append_item(step: &mut Value, name: &str, item: Value) {
    let mut list = step[name].as_array().cloned().unwrap_or_default();
    list.push(item);
    step[name] = list.into();
}
