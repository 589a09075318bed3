//! Tests whole answers of Chat Completions.

use crate::client::{KEY, call, chat, get, post, start, with};
use serde_json::{Value, json};

fn asking(question: &str) -> Value {
    json!({"model": "sim-chat", "messages": [{"role": "user", "content": question}]})
}

#[tokio::test]
async fn an_answer_has_everything_the_vendor_sends() {
    let sim = start().await;
    let answer = chat(&sim, &asking("say exactly: Hello, world!")).await;
    assert_eq!(answer.status, 200);
    let mut body = answer.json();
    assert!(body["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert!(body["created"].as_u64().unwrap() > 1_700_000_000);
    assert!(
        body["system_fingerprint"]
            .as_str()
            .unwrap()
            .starts_with("fp_")
    );
    for name in ["id", "created", "system_fingerprint"] {
        body[name] = Value::Null;
    }
    assert_eq!(
        body,
        json!({
            "id": null, "object": "chat.completion", "created": null, "model": "sim-chat-2026-01-01",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello, world!",
                "refusal": null, "annotations": []}, "logprobs": null, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 15, "completion_tokens": 4, "total_tokens": 19,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0,
                    "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}},
            "service_tier": "default", "system_fingerprint": null
        })
    );
    for name in [
        "x-request-id",
        "openai-organization",
        "server",
        "set-cookie",
        "x-ratelimit-remaining-requests",
    ] {
        assert!(answer.header(name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn ids_differ_and_texts_do_not() {
    let sim = start().await;
    let first = chat(&sim, &asking("Where do rivers go?")).await;
    let second = chat(&sim, &asking("Where do rivers go?")).await;
    assert_ne!(first.json()["id"], second.json()["id"]);
    assert_eq!(first.json()["choices"], second.json()["choices"]);
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
}

#[tokio::test]
async fn parameters_are_honoured() {
    let sim = start().await;
    for (members, pointer, expected) in [
        (
            json!({"max_tokens": 2}),
            "/choices/0/message/content",
            json!("1,"),
        ),
        (
            json!({"max_tokens": 2}),
            "/choices/0/finish_reason",
            json!("length"),
        ),
        (
            json!({"max_tokens": 2}),
            "/usage/completion_tokens",
            json!(2),
        ),
        (
            json!({"max_completion_tokens": 1}),
            "/choices/0/message/content",
            json!("1"),
        ),
        (
            json!({"stop": [", 3"]}),
            "/choices/0/message/content",
            json!("1, 2"),
        ),
        (
            json!({"stop": ", 2"}),
            "/choices/0/finish_reason",
            json!("stop"),
        ),
        (
            json!({"n": 2}),
            "/choices/1/message/content",
            json!("1, 2, 3"),
        ),
        (json!({"n": 2}), "/usage/completion_tokens", json!(10)),
        (
            json!({"logprobs": true, "top_logprobs": 3}),
            "/choices/0/logprobs/content/1/token",
            json!(","),
        ),
        (
            json!({"reasoning_effort": "none"}),
            "/usage/completion_tokens_details/reasoning_tokens",
            json!(0),
        ),
    ] {
        let request = with(asking("Count to 3"), members.clone());
        let body = chat(&sim, &request).await.json();
        assert_eq!(
            body.pointer(pointer),
            Some(&expected),
            "{members} {pointer}"
        );
    }
}

#[tokio::test]
async fn reasoning_is_told_and_counted() {
    let sim = start().await;
    let request = with(
        asking("say exactly: yes"),
        json!({"reasoning_effort": "low"}),
    );
    let body = chat(&sim, &request).await.json();
    let reasoning = body["choices"][0]["message"]["reasoning_content"]
        .as_str()
        .unwrap();
    let tokens = sim::count_tokens(reasoning);
    assert!(tokens > 5);
    assert_eq!(
        body["usage"]["completion_tokens_details"]["reasoning_tokens"],
        tokens
    );
    assert_eq!(body["usage"]["completion_tokens"], tokens + 1);
}

#[tokio::test]
async fn tools_are_called_and_their_results_used() {
    let sim = start().await;
    let tool = |name: &str| {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}}})
    };
    let mut request = with(
        asking("What are the weather and the time in Paris?"),
        json!({"tools": [tool("get_weather"), tool("get_time")]}),
    );
    let body = chat(&sim, &request).await.json();
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], Value::Null);
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2);
    assert_eq!(
        calls[0]["function"],
        json!({"name": "get_weather", "arguments": "{\"city\":\"Paris\"}"})
    );
    assert_ne!(calls[0]["id"], calls[1]["id"]);

    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(choice["message"].clone());
    for (call, result) in calls.iter().zip(["18 degrees", "noon"]) {
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": result}));
    }
    let body = chat(&sim, &request).await.json();
    assert_eq!(
        body["choices"][0]["message"]["content"],
        "The get_weather result is 18 degrees. The get_time result is noon."
    );
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn custom_tools_and_functions_have_their_own_forms() {
    let sim = start().await;
    let custom = with(
        asking("Use run_code on \"print(1)\""),
        json!({"tools": [{"type": "custom", "custom": {"name": "run_code"}}]}),
    );
    let body = chat(&sim, &custom).await.json();
    let call = &body["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["type"], "custom");
    assert_eq!(
        call["custom"],
        json!({"name": "run_code", "input": "print(1)"})
    );

    let legacy = with(
        asking("Call ping"),
        json!({"functions": [{"name": "ping"}]}),
    );
    let body = chat(&sim, &legacy).await.json();
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "function_call");
    assert_eq!(
        choice["message"]["function_call"],
        json!({"name": "ping", "arguments": "{}"})
    );
}

#[tokio::test]
async fn structured_output_satisfies_its_schema() {
    let sim = start().await;
    let schema = json!({"type": "object", "additionalProperties": false,
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"]});
    let request = with(
        asking("Extract: my name is Ada and I am 36"),
        json!({"response_format": {"type": "json_schema",
            "json_schema": {"name": "person", "strict": true, "schema": schema}}}),
    );
    let body = chat(&sim, &request).await.json();
    let content = body["choices"][0]["message"]["content"].as_str().unwrap();
    let person: Value = serde_json::from_str(content).unwrap();
    assert_eq!(person, json!({"name": "Ada", "age": 36}));
}

#[tokio::test]
async fn images_are_described() {
    let sim = start().await;
    let pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let request = json!({"model": "sim-chat", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": pixel}}]}]});
    let body = chat(&sim, &request).await.json();
    let content = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(
        content.contains("one 1x1 PNG image of 70 bytes"),
        "{content}"
    );
    assert!(body["usage"]["prompt_tokens"].as_u64().unwrap() > 200);
}

#[tokio::test]
async fn sound_goes_in_and_out() {
    let sim = start().await;
    let request = json!({"model": "sim-chat", "modalities": ["text", "audio"],
        "audio": {"voice": "alloy", "format": "wav"},
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "say exactly: yes"},
            {"type": "input_audio", "input_audio": {"data": "UklGRgAAAABXQVZF", "format": "wav"}}]}]});
    let body = chat(&sim, &request).await.json();
    let message = &body["choices"][0]["message"];
    assert_eq!(message["content"], Value::Null);
    assert_eq!(message["audio"]["transcript"], "yes");
    assert!(message["audio"]["data"].as_str().unwrap().len() > 10);
    let usage = &body["usage"];
    assert_eq!(usage["prompt_tokens_details"]["audio_tokens"], 1);
    assert_eq!(usage["completion_tokens_details"]["audio_tokens"], 1);

    let chunks = chat(&sim, &with(request, json!({"stream": true})))
        .await
        .chunk_values();
    let joined = |name: &str| -> String {
        let audio = chunks
            .iter()
            .map(|chunk| &chunk["choices"][0]["delta"]["audio"][name]);
        audio.filter_map(Value::as_str).collect()
    };
    assert_eq!(joined("transcript"), "yes");
    assert_eq!(joined("data"), message["audio"]["data"].as_str().unwrap());
    assert!(joined("id").starts_with("audio_"));
}

#[tokio::test]
async fn an_answer_that_would_fill_the_memory_is_refused() {
    let sim = start().await;
    let request = with(
        asking("hi"),
        json!({"model": "sim-chat+reply-bytes=1000000", "logprobs": true, "top_logprobs": 20}),
    );
    assert_eq!(chat(&sim, &request).await.status, 400);
}

#[tokio::test]
async fn keys_paths_and_models_are_checked() {
    let sim = start().await;
    let request = asking("hi").to_string();
    let path = "/v1/chat/completions";
    for (head, status, code) in [
        ("", 401, Value::Null),
        (
            "authorization: Bearer sim-bad-key\r\n",
            401,
            json!("invalid_api_key"),
        ),
        (
            "authorization: Bearer sim-poor-key\r\n",
            429,
            json!("insufficient_quota"),
        ),
    ] {
        let answer = call(&sim, "POST", path, head, request.as_bytes()).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (status, &code),
            "{head}"
        );
    }
    assert_eq!(get(&sim, "/v1/nothing").await.status, 404);
    assert_eq!(get(&sim, path).await.status, 405);
    let missing = chat(&sim, &with(asking("hi"), json!({"model": "missing-x"}))).await;
    assert_eq!(missing.status, 404);
    assert_eq!(missing.json()["error"]["code"], "model_not_found");
    let unread = post(&sim, path, "{\"model\":").await;
    assert_eq!(
        (unread.status, unread.header("content-type")),
        (400, Some("application/json"))
    );
    let wrong = chat(&sim, &json!({"model": "sim-chat"})).await;
    assert_eq!(
        wrong.json()["error"],
        json!({"message": "Missing required parameter: 'messages'.", "type": "invalid_request_error",
               "param": "messages", "code": "missing_required_parameter"})
    );
}

#[tokio::test]
async fn models_are_listed() {
    let sim = start().await;
    let list = get(&sim, "/v1/models").await.json();
    assert_eq!(list["object"], "list");
    assert_eq!(list["data"][0]["id"], "sim-chat");
    assert_eq!(
        get(&sim, "/v1/models/sim-mini").await.json()["id"],
        "sim-mini"
    );
    assert_eq!(get(&sim, "/v1/models/missing").await.status, 404);
    let head = format!("authorization: Bearer {KEY}\r\n");
    assert_eq!(
        call(&sim, "DELETE", "/v1/models", &head, b"").await.status,
        405
    );
}
