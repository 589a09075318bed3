//! Builds requests of the Responses protocol, and joins its streams as a client does.

use crate::client::with;
use serde_json::{Value, json};

/// A request with some members replaced.
pub(crate) fn request(input: impl Into<Value>, changes: Value) -> Value {
    let request = json!({"model": "sim-chat", "input": input.into(), "store": false});
    with(request, changes)
}

pub(crate) fn tools() -> Value {
    let tool = |name: &str| {
        json!({"type": "function", "name": name, "strict": true, "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"],
            "additionalProperties": false}})
    };
    json!([tool("get_weather"), tool("get_time"), {"type": "custom", "name": "run_code"}])
}

/// Joins a stream into its response as a client does, and checks the rules that clients rely on.
pub(crate) fn folded(events: &[(String, Value)]) -> Value {
    let mut output: Vec<Value> = Vec::new();
    let mut text = String::new();
    let mut response = Value::Null;
    let mut done = 0;
    for (number, (name, data)) in events.iter().enumerate() {
        assert_eq!(data["type"], *name);
        assert_eq!(data["sequence_number"], number, "numbers are dense");
        let index = usize::try_from(data["output_index"].as_u64().unwrap_or(0)).unwrap();
        match name.as_str() {
            "response.created" | "response.in_progress" => {
                assert_eq!(data["response"]["status"], "in_progress");
                assert_eq!(data["response"]["output"], json!([]));
                response = data["response"].clone();
            }
            "response.output_item.added" => {
                assert_eq!((index, done), (output.len(), index), "one item at a time");
                output.push(data["item"].clone());
                text.clear();
                // The opening event may already contain the arguments.
                let early = ["arguments", "input"]
                    .iter()
                    .find_map(|name| data["item"][*name].as_str());
                text.push_str(early.unwrap_or_default());
            }
            "response.output_item.done" => {
                assert_eq!(data["item"]["id"], output[index]["id"]);
                output[index] = data["item"].clone();
                done += 1;
            }
            "response.completed" | "response.incomplete" => {
                assert_eq!(data["response"]["id"], response["id"]);
                assert_eq!(data["response"]["output"], json!(output));
                response = data["response"].clone();
            }
            "response.output_text.annotation.added" => {
                assert_eq!(data["annotation"]["type"], "url_citation");
            }
            name => match name.rsplit_once('.') {
                Some((of, "added")) if of.ends_with("_part") => text.clear(),
                Some((_, "delta")) => text.push_str(data["delta"].as_str().unwrap()),
                Some((of, "done")) if of.ends_with("_part") => {}
                Some((_, "done")) => {
                    let whole = ["text", "refusal", "arguments", "input"]
                        .iter()
                        .find_map(|member| data[*member].as_str());
                    assert_eq!(whole, Some(text.as_str()), "{name}");
                }
                _ => panic!("unknown event {name}"),
            },
        }
    }
    assert_eq!(done, output.len());
    response
}

/// Removes the ids and sealed values, which differ between two calls, so that the responses can be compared.
pub(crate) fn without_ids(response: &Value) -> Value {
    let mut response = response.clone();
    for member in ["id", "created_at", "completed_at"] {
        response[member] = Value::Null;
    }
    for item in response["output"].as_array_mut().unwrap() {
        for member in ["id", "call_id", "encrypted_content"] {
            item[member] = json!(item[member].is_string());
        }
    }
    response
}
