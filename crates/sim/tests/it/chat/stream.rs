//! Tests streamed answers of Chat Completions.

use crate::client::{Answer, chat};
use serde_json::{Value, json};
use sim::Sim;

async fn stream(question: &str, members: Value) -> Answer {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let mut request = json!({"model": "sim-chat", "stream": true,
        "messages": [{"role": "user", "content": question}]});
    let (Value::Object(map), Value::Object(members)) = (&mut request, members) else {
        panic!("both are objects");
    };
    map.extend(members);
    chat(&sim, &request).await
}

/// Joins one member of the deltas of a choice.
fn joined(chunks: &[Value], index: u64, pointer: &str) -> String {
    chunks
        .iter()
        .flat_map(|chunk| chunk["choices"].as_array().unwrap())
        .filter(|choice| choice["index"] == index)
        .filter_map(|choice| choice["delta"].pointer(pointer)?.as_str())
        .collect()
}

#[tokio::test]
async fn a_stream_is_as_the_protocol_says() {
    let answer = stream(
        "say exactly: Hello, world!",
        json!({"stream_options": {"include_usage": true, "include_obfuscation": false}}),
    )
    .await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    let first: Value = serde_json::from_str(&answer.events()[0]).unwrap();
    let shown: Vec<_> = answer
        .events()
        .iter()
        .map(|event| {
            let event = event.replace(first["id"].as_str().unwrap(), "ID");
            event.replace(&first["created"].to_string(), "0")
        })
        .collect();
    let print = first["system_fingerprint"].as_str().unwrap();
    let lead = format!(
        "{{\"id\":\"ID\",\"object\":\"chat.completion.chunk\",\"created\":0,\
         \"model\":\"sim-chat-2026-01-01\",\"service_tier\":\"default\",\
         \"system_fingerprint\":\"{print}\",\"choices\":"
    );
    let chunk = |delta: &str, finish: &str| {
        format!(
            "{lead}[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}],\
             \"usage\":null}}"
        )
    };
    let details = "\"prompt_tokens_details\":{\"cached_tokens\":0,\"cache_write_tokens\":0,\
                   \"audio_tokens\":0},\"completion_tokens_details\":{\"reasoning_tokens\":0,\
                   \"audio_tokens\":0,\"accepted_prediction_tokens\":0,\
                   \"rejected_prediction_tokens\":0}";
    assert_eq!(
        shown,
        [
            chunk(
                "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}",
                "null"
            ),
            chunk("{\"content\":\"Hello\"}", "null"),
            chunk("{\"content\":\",\"}", "null"),
            chunk("{\"content\":\" world\"}", "null"),
            chunk("{\"content\":\"!\"}", "null"),
            chunk("{}", "\"stop\""),
            format!(
                "{lead}[],\"usage\":{{\"prompt_tokens\":15,\"completion_tokens\":4,\
                 \"total_tokens\":19,{details}}}}}"
            ),
            "[DONE]".to_owned(),
        ]
    );
}

#[tokio::test]
async fn usage_comes_only_when_it_is_asked_for() {
    for options in [
        json!({}),
        json!({"stream_options": {"include_usage": false}}),
    ] {
        let answer = stream("Hello", options).await;
        assert!(
            answer
                .chunk_values()
                .iter()
                .all(|chunk| chunk.get("usage").is_none())
        );
        assert_eq!(answer.events().last().unwrap(), "[DONE]");
        assert!(answer.chunk_values()[0]["obfuscation"].is_string());
    }
}

#[tokio::test]
async fn calls_are_named_once_and_come_in_pieces() {
    let tool = |name: &str| {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}}})
    };
    let answer = stream(
        "Explain, and get the weather and the time in Paris in parallel",
        json!({"tools": [tool("get_weather"), tool("get_time")]}),
    )
    .await;
    let chunks = answer.chunk_values();
    assert!(!joined(&chunks, 0, "/content").is_empty());
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for chunk in &chunks {
        let Some(call) = chunk["choices"][0]["delta"].pointer("/tool_calls/0") else {
            continue;
        };
        let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
        let arguments = call["function"]["arguments"].as_str().unwrap();
        if index == calls.len() {
            assert_eq!((&call["type"], arguments), (&json!("function"), ""));
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            calls.push((
                text(&call["id"]),
                text(&call["function"]["name"]),
                String::new(),
            ));
        } else {
            assert_eq!(index + 1, calls.len());
            assert!(call.get("id").is_none() && call["function"].get("name").is_none());
            calls[index].2.push_str(arguments);
        }
    }
    let named: Vec<_> = calls
        .iter()
        .map(|(_, name, arguments)| (name.as_str(), arguments.as_str()))
        .collect();
    let paris = "{\"city\":\"Paris\"}";
    assert_eq!(named, [("get_weather", paris), ("get_time", paris)]);
    assert_eq!(
        chunks.last().unwrap()["choices"][0]["finish_reason"],
        "tool_calls"
    );
}

#[tokio::test]
async fn reasoning_refusals_and_choices_stream() {
    let chunks = stream(
        "say exactly: a b",
        json!({"n": 2, "reasoning_effort": "low"}),
    )
    .await
    .chunk_values();
    for index in [0, 1] {
        assert_eq!(joined(&chunks, index, "/content"), "a b");
        assert_eq!(joined(&chunks, index, "/role"), "assistant");
        assert!(joined(&chunks, index, "/reasoning_content").len() > 10);
    }
    assert_eq!(chunks[0]["choices"][0]["index"], 0);

    let chunks = stream("please refuse", json!({"logprobs": true}))
        .await
        .chunk_values();
    assert!(joined(&chunks, 0, "/refusal").contains("can't help"));
    assert_eq!(joined(&chunks, 0, "/content"), "");
    assert!(chunks[1]["choices"][0]["logprobs"]["refusal"].is_array());
}

#[tokio::test]
async fn a_stream_and_a_whole_answer_say_the_same() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    for question in [
        "Where do rivers go?",
        "Count to 12",
        "Reply with 50 words",
        "世界 says hello",
    ] {
        let mut request =
            json!({"model": "sim-chat", "messages": [{"role": "user", "content": question}]});
        let whole = chat(&sim, &request).await.json();
        request["stream"] = json!(true);
        request["stream_options"] = json!({"include_usage": true});
        let chunks = chat(&sim, &request).await.chunk_values();
        assert_eq!(
            whole["choices"][0]["message"]["content"],
            joined(&chunks, 0, "/content")
        );
        assert_eq!(whole["usage"], chunks.last().unwrap()["usage"]);
    }
}
