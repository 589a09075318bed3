//! The Responses protocol: answers, streams, reasoning in histories, refusals.

use crate::client::responses;
use serde_json::{Value, json};
use sim::Sim;

async fn start() -> Sim {
    Sim::start("127.0.0.1:0").await.unwrap()
}

/// A request with some members replaced.
pub(crate) fn request(input: impl Into<Value>, changes: Value) -> Value {
    let mut request = json!({"model": "sim-chat", "input": input.into(), "store": false});
    let (Value::Object(members), Value::Object(changes)) = (&mut request, changes) else {
        panic!("both are objects");
    };
    members.extend(changes);
    request
}

pub(crate) fn tools() -> Value {
    let tool = |name: &str| {
        json!({"type": "function", "name": name, "strict": true, "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"],
            "additionalProperties": false}})
    };
    json!([tool("get_weather"), tool("get_time"), {"type": "custom", "name": "run_code"}])
}

/// Joins a stream to its response as a client does, and checks what clients rely on.
pub(crate) fn folded(events: &[(String, Value)]) -> Value {
    let mut output: Vec<Value> = Vec::new();
    let mut said = String::new();
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
                said.clear();
                // The opening event may already contain the arguments.
                let early = ["arguments", "input"]
                    .iter()
                    .find_map(|name| data["item"][*name].as_str());
                said.push_str(early.unwrap_or_default());
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
                Some((of, "added")) if of.ends_with("_part") => said.clear(),
                Some((_, "delta")) => said.push_str(data["delta"].as_str().unwrap()),
                Some((of, "done")) if of.ends_with("_part") => {}
                Some((_, "done")) => {
                    let whole = ["text", "refusal", "arguments", "input"]
                        .iter()
                        .find_map(|member| data[*member].as_str());
                    assert_eq!(whole, Some(said.as_str()), "{name}");
                }
                _ => panic!("unknown event {name}"),
            },
        }
    }
    assert_eq!(done, output.len());
    response
}

/// Removes ids and sealed values, which differ between two calls. Everything else must be equal.
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

#[tokio::test]
async fn a_folded_stream_is_the_whole_answer() {
    let sim = start().await;
    for (question, changes) in [
        ("Where do rivers go?", json!({})),
        ("Count to 30", json!({"max_output_tokens": 16})),
        ("please refuse", json!({})),
        (
            "say exactly: hi",
            json!({"include": ["message.output_text.logprobs"], "top_logprobs": 3}),
        ),
        (
            "世界",
            json!({"reasoning": {"effort": "high", "summary": "detailed"}}),
        ),
        (
            "Hello",
            json!({"model": "sim-reason", "stream_options": {"include_obfuscation": false}}),
        ),
        ("Hello", json!({"model": "sim-chat+content-filter"})),
        (
            "Think",
            json!({"reasoning": {"effort": "max", "summary": "auto"}, "max_output_tokens": 20}),
        ),
        (
            "Explain. Weather and time in Paris, and run code",
            json!({"tools": tools(),
            "reasoning": {"effort": "low", "summary": "concise"}}),
        ),
        ("Rivers? Cite https://a.example/rivers", json!({})),
        (
            "Think aloud",
            json!({"model": "sim-open", "reasoning": {"effort": "low"}}),
        ),
        (
            "name is Ada, age is 7",
            json!({"text": {"format": {"type": "json_schema", "name": "p",
            "schema": {"type": "object", "properties": {"name": {"type": "string"},
            "age": {"type": "integer"}}, "required": ["name", "age"]}}}}),
        ),
    ] {
        let mut asked = request(question, changes);
        let whole = responses(&sim, &asked).await.json();
        asked["stream"] = json!(true);
        let events = responses(&sim, &asked).await.named_events();
        assert_eq!(
            without_ids(&folded(&events)),
            without_ids(&whole),
            "{question}"
        );
    }
}

#[tokio::test]
async fn reasoning_is_taken_back_as_it_was_given() {
    let sim = start().await;
    let question = json!({"role": "user", "content": "What is the weather in Paris?"});
    let ask = |items: &[Value]| {
        let mut input = vec![question.clone()];
        input.extend_from_slice(items);
        let changes = json!({"model": "sim-reason", "tools": tools()});
        request(json!(input), changes)
    };
    let first = responses(&sim, &ask(&[])).await.json();
    let items = first["output"].as_array().unwrap().clone();
    let [thought, call] = &items[..] else {
        panic!("reasoning and a call: {items:?}");
    };
    let result =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "18"});
    let with = |item: &Value, member: &str, value: Value| {
        let mut item = item.clone();
        item[member] = value;
        item
    };
    let nameless = with(thought, "id", Value::Null);
    let bare = with(call, "id", Value::Null);
    let sealed = thought["encrypted_content"].as_str().unwrap();
    let altered = with(
        thought,
        "encrypted_content",
        json!(sealed.replacen('+', "-", 1)),
    );
    let empty = with(thought, "encrypted_content", Value::Null);
    let renamed = with(thought, "id", json!("rs_other"));
    for (items, status, part) in [
        (vec![thought, call, &result], 200, ""),
        (vec![&nameless, call, &result], 200, ""),
        (vec![&bare, &result], 200, ""),
        (
            vec![call, &result],
            400,
            "without its required 'reasoning' item",
        ),
        (vec![&altered, call, &result], 400, "could not be decrypted"),
        (vec![&renamed, call, &result], 400, "did not match"),
        (vec![&empty, call, &result], 404, "not persisted"),
        (
            vec![&bare, &result, thought],
            400,
            "required following item",
        ),
        (vec![thought, call], 400, "No tool output found"),
        (vec![&result], 400, "No tool call found"),
    ] {
        let items: Vec<_> = items.into_iter().cloned().collect();
        let answer = responses(&sim, &ask(&items)).await;
        let said = answer.text();
        assert!(
            answer.status == status && said.contains(part),
            "{part}: {said}"
        );
    }
    let mut demanding = ask(&[bare, result]);
    demanding["model"] = json!("sim-reason+demand-reasoning");
    assert_eq!(responses(&sim, &demanding).await.status, 400);
    let mut other = ask(&items);
    other["model"] = json!("sim-reason-2");
    assert_eq!(
        responses(&sim, &other).await.json()["error"]["code"],
        "invalid_encrypted_content"
    );
}

#[tokio::test]
async fn encrypted_reasoning_comes_when_asked_for_or_nothing_is_stored() {
    let sim = start().await;
    for (changes, expected) in [
        (json!({"store": true}), false),
        (json!({"store": null}), false),
        (json!({"store": false}), true),
        (
            json!({"store": true, "include": ["reasoning.encrypted_content"]}),
            true,
        ),
    ] {
        let mut asked = request("Hi", changes);
        asked["model"] = json!("sim-reason");
        let response = responses(&sim, &asked).await.json();
        let given = response["output"][0]["encrypted_content"].is_string();
        assert_eq!(given, expected, "{asked}");
        assert_eq!(response["store"], asked["store"].as_bool().unwrap_or(true));
    }
}

#[tokio::test]
async fn interleaved_reasoning_stands_before_its_calls() {
    let sim = start().await;
    let question = json!({"role": "user", "content": "Weather and time in Paris"});
    let changes = json!({"model": "sim-reason+interleaved+demand-reasoning", "tools": tools()});
    let ask = |items: Vec<Value>| request(json!(items), changes.clone());
    let first = responses(&sim, &ask(vec![question.clone()])).await.json();
    let items = first["output"].as_array().unwrap();
    let kinds: Vec<_> = items.iter().map(|item| &item["type"]).collect();
    assert_eq!(
        kinds,
        ["reasoning", "function_call", "reasoning", "function_call"]
    );
    let result = |call: &Value| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "18"});
    let results = [result(&items[1]), result(&items[3])];
    for (order, status) in [
        (vec![0, 1, 2, 3], 200),
        (vec![0, 1, 3], 400),
        (vec![2, 1, 3], 400),
    ] {
        let mut input = vec![question.clone()];
        input.extend(order.iter().map(|at: &usize| items[*at].clone()));
        input.extend(results.clone());
        assert_eq!(
            responses(&sim, &ask(input)).await.status,
            status,
            "{order:?}"
        );
    }
}

/// Invalid members, and the param and code of the refusal.
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

#[tokio::test]
async fn the_request_is_repeated_in_the_answer() {
    let sim = start().await;
    let plain = responses(&sim, &json!({"model": "sim-chat", "input": "Hi"}))
        .await
        .json();
    for (member, value) in [
        ("object", json!("response")),
        ("status", json!("completed")),
        ("model", json!("sim-chat-2026-01-01")),
        ("error", Value::Null),
        ("incomplete_details", Value::Null),
        ("instructions", Value::Null),
        ("store", json!(true)),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("temperature", json!(1.0)),
        (
            "text",
            json!({"format": {"type": "text"}, "verbosity": "medium"}),
        ),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("service_tier", json!("default")),
    ] {
        assert_eq!(plain[member], value, "{member}");
    }
    let changes = json!({"instructions": "Be brief.", "metadata": {"a": "b"}, "temperature": 0.5,
        "tools": [{"type": "function", "name": "f", "parameters": null}], "service_tier": "auto",
        "reasoning": {"effort": "low"}, "parallel_tool_calls": false, "user": "u"});
    let answer = responses(&sim, &request("Hi", changes.clone()))
        .await
        .json();
    for member in [
        "instructions",
        "metadata",
        "temperature",
        "parallel_tool_calls",
        "user",
    ] {
        assert_eq!(answer[member], changes[member], "{member}");
    }
    assert_eq!(answer["tools"][0]["strict"], false);
    assert_eq!(
        answer["reasoning"],
        json!({"effort": "low", "summary": null})
    );
    assert!(answer["id"].as_str().unwrap().starts_with("resp_Sim"));
}

#[tokio::test]
async fn outputs_of_tools_may_hold_images() {
    const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let sim = start().await;
    let input = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "What is the weather?"}]},
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [
            {"type": "input_text", "text": "sunny"}, {"type": "input_image", "image_url": PIXEL}]},
    ]);
    let answer = responses(&sim, &request(input, json!({"tools": tools()})))
        .await
        .json();
    assert_eq!(
        answer["output"][0]["content"][0]["text"],
        "The get_weather result is sunny. I received one 1x1 PNG image of 70 bytes."
    );
}
