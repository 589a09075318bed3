//! Interactions: answers, streams, signed thoughts, refusals.

use crate::client::{Answer, Ended, KEY, call};
use serde_json::{Value, json};
use sim::Sim;

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async fn start() -> Sim {
    Sim::start("127.0.0.1:0").await.unwrap()
}

pub(crate) async fn interact(sim: &Sim, request: &Value) -> Answer {
    let head = format!("x-goog-api-key: {KEY}\r\ncontent-type: application/json\r\n");
    let body = request.to_string();
    call(sim, "POST", "/v1beta/interactions", &head, body.as_bytes()).await
}

pub(crate) async fn stream(sim: &Sim, request: &Value) -> Answer {
    interact(sim, &with(request.clone(), json!({"stream": true}))).await
}

fn asking(model: &str, question: &str) -> Value {
    json!({"model": model, "input": question})
}

fn with(mut request: Value, members: Value) -> Value {
    let (Value::Object(request_map), Value::Object(members)) = (&mut request, members) else {
        panic!("both are objects");
    };
    request_map.extend(members);
    request
}

/// The data of each event, without the end mark. Checks that the data repeats the name.
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

/// Joins the steps of a stream as a client would. Also returns the final interaction.
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

fn close(step: &mut Value, text: &str) {
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

fn tools() -> Value {
    let tool = |name: &str| {
        json!({"type": "function", "name": name, "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}})
    };
    json!([tool("get_weather"), tool("get_time")])
}

fn user(text: &str) -> Value {
    json!({"type": "user_input", "content": [{"type": "text", "text": text}]})
}

#[tokio::test]
async fn an_answer_has_everything_the_vendor_sends() {
    let sim = start().await;
    let mut body = interact(&sim, &asking("sim-chat", "say exactly: Hello, world!"))
        .await
        .json();
    assert!(body["id"].as_str().unwrap().starts_with("v1_"));
    assert!(body["created"].as_str().unwrap().ends_with('Z'));
    assert!(body["steps"][0]["signature"].as_str().unwrap().len() > 100);
    body["steps"][0]["signature"] = Value::Null;
    for name in ["id", "created", "updated"] {
        body[name] = Value::Null;
    }
    assert_eq!(
        body,
        json!({
            "id": null, "object": "interaction", "model": "sim-chat-2026-01-01",
            "status": "completed", "created": null, "updated": null, "service_tier": "standard",
            "steps": [{"type": "thought", "signature": null},
                {"type": "model_output", "content": [{"type": "text", "text": "Hello, world!"}]}],
            "usage": {"total_tokens": 19, "total_input_tokens": 15,
                "input_tokens_by_modality": [{"modality": "text", "tokens": 15}],
                "total_cached_tokens": 0, "total_output_tokens": 4, "total_tool_use_tokens": 0,
                "total_thought_tokens": 0}
        })
    );
    let unstored = with(asking("sim-chat", "hi"), json!({"store": false}));
    assert_eq!(interact(&sim, &unstored).await.json()["id"], "");
}

#[tokio::test]
async fn a_stream_is_as_the_vendor_sends_it() {
    let sim = start().await;
    let answer = stream(&sim, &asking("sim-chat", "say exactly: Hello, world!")).await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert!(answer.text().ends_with("event: done\ndata: [DONE]\n\n"));
    let events = events(&answer);
    let names: Vec<_> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "interaction.created",
            "interaction.status_update",
            "step.start",
            "step.delta",
            "step.stop",
            "step.start",
            "step.delta",
            "step.delta",
            "step.delta",
            "step.delta",
            "step.stop",
            "interaction.completed",
        ]
    );
    assert_eq!(events[0]["interaction"]["status"], "in_progress");
    assert_eq!(events[1]["interaction_id"], events[0]["interaction"]["id"]);
    assert_eq!(
        events[6],
        json!({"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": "Hello"}})
    );
    let completed = &events[11]["interaction"];
    assert_eq!(completed["status"], "completed");
    assert_eq!(completed["usage"]["total_tokens"], 19);
    assert!(completed.get("steps").is_none());
}

#[tokio::test]
async fn thoughts_calls_and_results_go_round() {
    let sim = start().await;
    let request = json!({"model": "sim-reason", "store": false, "tools": tools(),
        "generation_config": {"thinking_summaries": "auto", "thinking_level": "low"}});
    for streamed in [false, true] {
        let mut steps = vec![user("Explain: first the weather, then the time in Rome")];
        let mut names = Vec::new();
        for _ in 0..2 {
            let asked = with(request.clone(), json!({"input": steps}));
            let (told, status) = if streamed {
                let (told, completed) = folded(&events(&stream(&sim, &asked).await));
                (told, completed["status"].clone())
            } else {
                let body = interact(&sim, &asked).await.json();
                let told = body["steps"].as_array().unwrap().clone();
                (told, body["status"].clone())
            };
            assert_eq!(status, "requires_action");
            let kinds: Vec<_> = told
                .iter()
                .map(|step| step["type"].as_str().unwrap())
                .collect();
            assert_eq!(kinds, ["thought", "model_output", "function_call"]);
            assert!(told[0]["summary"][0]["text"].as_str().unwrap().len() > 10);
            assert_eq!(told[2]["arguments"], json!({"city": "Rome"}));
            names.push(told[2]["name"].as_str().unwrap().to_owned());
            let id = told[2]["id"].clone();
            steps.extend(told);
            steps.push(json!({"type": "function_result", "call_id": id,
                "result": [{"type": "text", "text": "fine"}]}));
        }
        assert_eq!(names, ["get_weather", "get_time"]);
        let body = interact(&sim, &with(request.clone(), json!({"input": steps})))
            .await
            .json();
        assert_eq!(body["status"], "completed");
        assert!(body["usage"]["total_thought_tokens"].as_u64().unwrap() > 5);
        // The thought of the first step is still required.
        steps.remove(1);
        let answer = interact(&sim, &with(request.clone(), json!({"input": steps}))).await;
        assert_eq!(answer.status, 400);
    }
}

#[tokio::test]
async fn parallel_calls_share_one_thought() {
    let sim = start().await;
    let request = with(
        asking("sim-chat", "What are the weather and the time in Paris?"),
        json!({"tools": tools()}),
    );
    let body = interact(&sim, &request).await.json();
    let told = body["steps"].as_array().unwrap();
    let kinds: Vec<_> = told.iter().map(|step| &step["type"]).collect();
    assert_eq!(kinds, ["thought", "function_call", "function_call"]);
    let result = |call: &Value, result: Value| json!({"type": "function_result", "call_id": call["id"], "name": call["name"], "result": result});
    let mut steps = vec![user("What are the weather and the time in Paris?")];
    steps.extend(told.iter().cloned());
    steps.push(result(
        &told[1],
        json!([{"type": "text", "text": "see"},
        {"type": "image", "data": PIXEL, "mime_type": "image/png"}]),
    ));
    let mut failed = result(&told[2], json!("no clock"));
    failed["is_error"] = json!(true);
    steps.push(failed);
    let next = with(request, json!({"input": steps}));
    let body = interact(&sim, &next).await.json();
    let text = body["steps"][1]["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "The get_weather result is see. I received one 1x1 PNG image of 70 bytes. \
         The get_time call failed: no clock."
    );
}

#[tokio::test]
async fn signed_thoughts_must_come_back_unaltered() {
    let sim = start().await;
    let request = with(
        asking("sim-chat", "The weather in Paris"),
        json!({"tools": tools()}),
    );
    let body = interact(&sim, &request).await.json();
    let (thought, made) = (&body["steps"][0], &body["steps"][1]);
    let signature = thought["signature"].as_str().unwrap();
    let altered = signature.replacen("++", "+A", 1);
    let result = json!({"type": "function_result", "call_id": made["id"], "result": {"ok": true}});
    let invalid = "Request contains an invalid argument.";
    for (model, signature, status, part) in [
        ("sim-chat", json!(signature), 200, "{\\\"ok\\\":true}"),
        (
            "sim-chat",
            json!("skip_thought_signature_validator"),
            200,
            "ok",
        ),
        (
            "sim-chat",
            json!("context_engineering_is_the_way_to_go"),
            200,
            "ok",
        ),
        ("sim-chat", json!(""), 400, invalid),
        ("sim-chat", Value::Null, 400, invalid),
        (
            "sim-chat",
            json!(altered),
            400,
            "Corrupted thought signature.",
        ),
        (
            "sim-mini",
            json!(signature),
            400,
            "Corrupted thought signature.",
        ),
        ("sim-chat+unsigned", Value::Null, 200, "ok"),
    ] {
        let thought = json!({"type": "thought", "signature": signature});
        let next = json!({"model": model, "tools": tools(),
            "input": [user("The weather in Paris"), thought, made, result]});
        let answer = interact(&sim, &next).await;
        assert_eq!(answer.status, status, "{model} {signature}");
        assert!(answer.text().contains(part), "{}", answer.text());
        // An error that the model detects is an event, under the status of the error.
        let streamed = stream(&sim, &next).await;
        assert_eq!(streamed.status, status, "{model} {signature}");
        if status == 400 {
            assert_eq!(
                streamed.header("content-type"),
                Some("text/event-stream; charset=utf-8")
            );
            assert_eq!(events(&streamed)[0]["error"]["message"], part);
        }
    }
    // Earlier turns need no thoughts.
    let next = json!({"model": "sim-chat", "input": [user("a"), made, result, user("b")]});
    assert_eq!(interact(&sim, &next).await.status, 200);
}

#[tokio::test]
async fn pages_are_cited_by_bytes() {
    let sim = start().await;
    let request = asking("sim-chat", "say exactly: Grüße, cite https://a.example/b");
    let body = interact(&sim, &request).await.json();
    let content = &body["steps"][1]["content"][0];
    let bytes = content["text"].as_str().unwrap().len();
    assert_eq!(
        content["annotations"],
        json!([{"type": "url_citation", "url": "https://a.example/b",
            "title": "A page of a.example", "start_index": 0, "end_index": bytes}])
    );
    let (steps, _) = folded(&events(&stream(&sim, &request).await));
    assert_eq!(steps[1]["annotations"], content["annotations"]);
}

#[tokio::test]
async fn inputs_come_in_many_forms() {
    let sim = start().await;
    let text = json!({"type": "text", "text": "say exactly: yes"});
    let image = json!({"type": "image", "data": PIXEL, "mime_type": "image/png"});
    let linked = json!({"type": "image", "uri": "https://example.com/a.png"});
    for (input, part) in [
        (json!("say exactly: yes"), "yes"),
        (text.clone(), "yes"),
        (json!([text]), "yes"),
        (json!([user("say exactly: yes")]), "yes"),
        (
            json!([image, {"type": "text", "text": "what?"}]),
            "one 1x1 PNG image of 70 bytes",
        ),
        (
            json!([{"type": "user_input", "content": [image]}]),
            "one 1x1 PNG image of 70 bytes",
        ),
        (json!([linked]), "one image at https://example.com/a.png"),
        (
            json!([user("My name is Ada."), {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]},
                {"type": "text", "text": "What is my name?"}]),
            "Your name is Ada.",
        ),
    ] {
        let body = interact(&sim, &json!({"model": "sim-chat", "input": input}))
            .await
            .json();
        let told = body["steps"][1]["content"][0]["text"].as_str().unwrap();
        assert!(told.contains(part), "{input}: {told}");
    }
}

#[tokio::test]
async fn parameters_are_honoured() {
    let sim = start().await;
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (members, pointer, expected) in [
        (
            json!({"generation_config": {"max_output_tokens": 2}}),
            "/steps/1/content/0/text",
            json!("1,"),
        ),
        (
            json!({"generation_config": {"max_output_tokens": 2}}),
            "/status",
            json!("incomplete"),
        ),
        (
            json!({"generation_config": {"stop_sequences": [", 3"]}}),
            "/steps/1/content/0/text",
            json!("1, 2"),
        ),
        (
            json!({"response_format": {"type": "text", "mime_type": "application/json", "schema": schema}}),
            "/steps/1/content/0/text",
            json!("{\"n\":3}"),
        ),
        (
            json!({"tools": tools(), "generation_config": {"tool_choice": "any"}}),
            "/steps/1/name",
            json!("get_weather"),
        ),
        (
            json!({"tools": tools(), "generation_config":
                {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["get_time"]}}}}),
            "/steps/1/name",
            json!("get_time"),
        ),
        (
            json!({"response_format": [{"type": "image", "image_size": "4K"}]}),
            "/usage/output_tokens_by_modality/0/tokens",
            json!(2520),
        ),
        (
            json!({"model": "sim-image"}),
            "/steps/1/content/1/mime_type",
            json!("image/png"),
        ),
    ] {
        let request = with(asking("sim-chat", "Count to 3"), members.clone());
        let body = interact(&sim, &request).await.json();
        assert_eq!(body.pointer(pointer), Some(&expected), "{members} {body}");
        let (steps, completed) = folded(&events(&stream(&sim, &request).await));
        assert_eq!(completed["usage"], body["usage"], "{members}");
        assert_eq!(completed["status"], body["status"], "{members}");
        assert_eq!(
            steps.len(),
            body["steps"].as_array().unwrap().len(),
            "{members}"
        );
    }
}

#[tokio::test]
async fn wrong_requests_are_refused() {
    let sim = start().await;
    let call = json!({"type": "function_call", "id": "a", "name": "f", "arguments": {}});
    let skip = json!({"type": "thought", "signature": "skip_thought_signature_validator"});
    let result = |id: &str| json!({"type": "function_result", "call_id": id, "result": "x"});
    for (members, status, code) in [
        (json!({"model": null}), 400, "invalid_request"),
        (json!({"model": "missing-x"}), 404, "model_not_found"),
        (json!({"input": null}), 400, "invalid_request"),
        (json!({"input": ""}), 400, "invalid_request"),
        (json!({"input": []}), 400, "invalid_request"),
        (json!({"input": [{"type": "poem"}]}), 400, "invalid_request"),
        (
            json!({"input": [{"role": "user", "content": "x"}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [{"type": "image"}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [user("x"), skip, call]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [user("x"), skip, call, user("y")]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [user("x"), skip, call, result("b")]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [user("x"), result("a")]}),
            400,
            "invalid_request",
        ),
        (json!({"tool_choice": "auto"}), 400, "parameter_unknown"),
        (json!({"max_output_tokens": 5}), 400, "parameter_unknown"),
        (
            json!({"generation_config": {"top_k": 5}}),
            400,
            "parameter_unknown",
        ),
        (
            json!({"system_instruction": {"parts": []}}),
            400,
            "invalid_request",
        ),
        (json!({"previous_interaction_id": "v1_x"}), 404, "not_found"),
        (json!({"background": true}), 400, "invalid_request"),
        (
            json!({"tools": [{"type": "custom"}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"tools": [{"type": "function", "name": "a b"}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"generation_config": {"tool_choice": "any"}}),
            400,
            "invalid_request",
        ),
        (json!({"model": "sim-chat+nonsense"}), 400, "sim_bad_script"),
    ] {
        let answer = interact(&sim, &with(asking("sim-chat", "hi"), members.clone())).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (status, &json!(code)),
            "{members}"
        );
        assert!(answer.json()["error"]["message"].is_string());
    }
}

#[tokio::test]
async fn keys_paths_and_bodies_are_checked() {
    let sim = start().await;
    let unread = call_raw(&sim, "/v1/interactions", "x-goog-api-key: k\r\n", b"[").await;
    assert_eq!(unread.status, 400);
    for (head, status, code) in [
        ("", 403, "authentication"),
        ("x-goog-api-key: sim-bad-key\r\n", 400, "authentication"),
        (
            "authorization: Bearer sim-poor-key\r\n",
            429,
            "quota_exceeded",
        ),
    ] {
        let body = asking("sim-chat", "hi").to_string();
        let answer = call_raw(&sim, "/v1/interactions", head, body.as_bytes()).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (status, &json!(code))
        );
    }
    let lost = call_raw(
        &sim,
        "/v1beta/interactions/v1_x/cancel",
        "x-goog-api-key: k\r\n",
        b"",
    )
    .await;
    assert_eq!(
        (lost.status, &lost.json()["error"]["code"]),
        (404, &json!("not_found"))
    );
}

async fn call_raw(sim: &Sim, path: &str, head: &str, body: &[u8]) -> Answer {
    call(sim, "POST", path, head, body).await
}

#[tokio::test]
async fn a_continuation_gives_the_rest() {
    let sim = start().await;
    let request = asking("sim-chat+continuation", "Count to 6");
    let first = interact(&sim, &request).await.json();
    assert_eq!(first["status"], "requires_continuation");
    let (_, completed) = folded(&events(&stream(&sim, &request).await));
    assert_eq!(completed["continuation_token"], first["continuation_token"]);
    let next = with(
        request.clone(),
        json!({"continuation_token": first["continuation_token"]}),
    );
    let second = interact(&sim, &next).await.json();
    assert_eq!(second["status"], "completed");
    let text = |body: &Value| {
        body["steps"][1]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(text(&first) + &text(&second), "1, 2, 3, 4, 5, 6");
    let wrong = with(request, json!({"continuation_token": "AAAA"}));
    assert_eq!(interact(&sim, &wrong).await.status, 400);
}

#[tokio::test]
async fn scripts_bend_answers_and_streams() {
    let sim = start().await;
    let faulty = |faults: &str| asking(&format!("sim-chat+{faults}"), "Count to 20");
    let answer = interact(&sim, &faulty("status=429:retry-after=7")).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("7"))
    );
    assert_eq!(answer.json()["error"]["code"], "rate_limit_exceeded");
    let answer = interact(&sim, &faulty("error-in-200")).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (200, &json!("api_error"))
    );
    let shown = events(&stream(&sim, &faulty("error-in-200")).await);
    assert_eq!(shown[0]["error"]["code"], "api_error");
    assert_eq!(interact(&sim, &faulty("empty-object")).await.text(), "{}");
    assert_eq!(
        stream(&sim, &faulty("empty-object")).await.text(),
        "data: {}\n\nevent: done\ndata: [DONE]\n\n"
    );
    assert_eq!(
        stream(&sim, &faulty("wrong-type=swapped")).await.json()["object"],
        "interaction"
    );
    assert!(events(&interact(&sim, &faulty("wrong-type=swapped")).await).len() > 10);

    let answer = stream(&sim, &faulty("error-event=3")).await;
    let shown = events(&answer);
    assert_eq!(shown.last().unwrap()["event_type"], "error");
    assert!(!answer.text().contains("[DONE]"));
    let shown = events(&stream(&sim, &faulty("garbage-event=2")).await);
    assert_eq!(shown.iter().filter(|event| event.is_string()).count(), 1);
    let answer = stream(&sim, &faulty("no-done")).await;
    assert!(answer.text().contains("interaction.completed") && !answer.text().contains("[DONE]"));
    let answer = stream(&sim, &faulty("no-finish")).await;
    assert!(!answer.text().contains("interaction.completed") && !answer.text().contains("[DONE]"));
    assert_eq!(answer.ended, Ended::Whole);

    let whole = interact(&sim, &faulty("finish=cancelled")).await.json();
    assert_eq!(whole["status"], "cancelled");
    let whole = interact(&sim, &faulty("blocked")).await.json();
    assert_eq!(
        (&whole["status"], &whole["errors"][0]["code"]),
        (&json!("failed"), &json!("safety"))
    );
    let whole = interact(&sim, &faulty("content-filter")).await.json();
    assert_eq!(whole["status"], "incomplete");
    assert!(whole["steps"][1]["error"]["message"].is_string());
    for (faults, total) in [
        ("usage=zero", json!(0)),
        ("usage=negative", json!(-5)),
        ("usage=string", json!("49")),
        ("tool-use=7", json!(56)),
    ] {
        let whole = interact(&sim, &faulty(faults)).await.json();
        assert_eq!(whole["usage"]["total_tokens"], total, "{faults}");
        let (_, completed) = folded(&events(&stream(&sim, &faulty(faults)).await));
        assert_eq!(completed["usage"]["total_tokens"], total, "{faults}");
    }
    assert!(
        !stream(&sim, &faulty("no-usage"))
            .await
            .text()
            .contains("total_tokens")
    );
    let shown = events(&stream(&sim, &faulty("usage=running")).await);
    let running = shown
        .iter()
        .filter(|event| event["metadata"]["total_usage"].is_object());
    assert!(running.count() > 10);
    let answer = stream(&sim, &faulty("cut=100")).await;
    assert_eq!((answer.body.len(), answer.ended), (100, Ended::Closed));

    let early = with(
        asking(
            "sim-chat+early-content",
            "Explain, then get the weather in Paris",
        ),
        json!({"tools": tools()}),
    );
    let shown = events(&stream(&sim, &early).await);
    let starts: Vec<_> = shown
        .iter()
        .filter(|event| event["event_type"] == "step.start")
        .map(|event| &event["step"])
        .collect();
    assert_eq!(starts[1]["content"][0]["text"], "Let");
    assert_eq!(starts[2]["arguments"], json!({"city": "Paris"}));
    let (steps, _) = folded(&shown);
    assert_eq!(
        steps[1]["content"][0]["text"],
        "Let me look that up for you."
    );
}
