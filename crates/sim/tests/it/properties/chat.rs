//! Properties of Chat Completions for generated requests: every answer follows the rules of the protocol.

use crate::client::chat;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use sim::Sim;

fn any_question() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,60}",
        "(say exactly: |count to |reply with )?[ -~]{0,40}",
        "What (is|are) the (weather|time)( and the (weather|time))? in [A-Z][a-z]{2,6}\\??",
    ]
}

fn any_request() -> impl Strategy<Value = Value> {
    let tool = |name: &str| {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 2}},
            "required": ["city", "days"]}}})
    };
    let tools = json!([tool("get_weather"), tool("get_time")]);
    (
        any_question(),
        prop::option::of(1_u64..40),
        1_usize..3,
        prop::bool::ANY,
        prop::option::of("[a-z ,]{1,2}"),
        prop::option::of(prop::sample::select(vec!["none", "low", "high"])),
    )
        .prop_map(move |(question, max, n, with_tools, stop, effort)| {
            json!({"model": "sim-chat", "messages": [{"role": "user", "content": question}],
                "max_completion_tokens": max, "n": n, "stop": stop, "reasoning_effort": effort,
                "tools": if with_tools { tools.clone() } else { Value::Null }})
        })
}

/// Joins a stream into the message of one choice, as a client would.
fn folded(chunks: &[Value], index: u64) -> (String, String, Vec<String>, Value) {
    let (mut text, mut reasoning, mut calls, mut finish) = (
        String::new(),
        String::new(),
        Vec::<String>::new(),
        Value::Null,
    );
    for choice in chunks
        .iter()
        .flat_map(|chunk| chunk["choices"].as_array().unwrap())
    {
        if choice["index"] != index {
            continue;
        }
        assert!(finish.is_null(), "nothing follows the finish");
        let delta = &choice["delta"];
        text.push_str(delta["content"].as_str().unwrap_or_default());
        reasoning.push_str(delta["reasoning_content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let place = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if call.get("id").is_some() {
                assert_eq!(place, calls.len());
                calls.push(String::new());
            }
            calls[place].push_str(call["function"]["arguments"].as_str().unwrap());
        }
        finish = choice["finish_reason"].clone();
    }
    (text, reasoning, calls, finish)
}

#[test]
fn a_folded_stream_is_the_whole_answer() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sim = runtime.block_on(Sim::start("127.0.0.1:0")).unwrap();
    let mut runner = TestRunner::new(Config::with_cases(64));
    let property = |mut request: Value| {
        let whole = runtime.block_on(chat(&sim, &request)).json();
        request["stream"] = json!(true);
        request["stream_options"] = json!({"include_usage": true});
        let stream = runtime.block_on(chat(&sim, &request));
        let chunks = stream.chunk_values();
        prop_assert_eq!(&whole["usage"], &chunks.last().unwrap()["usage"]);
        let mut tokens = 0;
        for choice in whole["choices"].as_array().unwrap() {
            let (text, reasoning, calls, finish) =
                folded(&chunks, choice["index"].as_u64().unwrap());
            let message = &choice["message"];
            prop_assert_eq!(
                message["content"].as_str().unwrap_or_default(),
                text.as_str()
            );
            prop_assert_eq!(
                message["reasoning_content"].as_str().unwrap_or_default(),
                reasoning.as_str()
            );
            prop_assert_eq!(&choice["finish_reason"], &finish);
            let whole_calls: Vec<_> = message["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|call| call["function"]["arguments"].as_str().unwrap().to_owned())
                .collect();
            prop_assert_eq!(&whole_calls, &calls);
            if finish == "tool_calls" {
                for arguments in &calls {
                    let arguments: Value = serde_json::from_str(arguments).unwrap();
                    prop_assert!(arguments["city"].is_string());
                    prop_assert!(arguments["days"].as_i64().unwrap() >= 2);
                }
            }
            tokens += sim::count_tokens(&text) + sim::count_tokens(&reasoning);
        }
        let usage = &whole["usage"];
        let completion = usage["completion_tokens"].as_u64().unwrap();
        prop_assert!(completion >= tokens);
        if let Some(max) = request["max_completion_tokens"].as_u64() {
            prop_assert!(completion <= max * request["n"].as_u64().unwrap());
        }
        prop_assert_eq!(
            usage["total_tokens"].as_u64(),
            usage["prompt_tokens"]
                .as_u64()
                .map(|prompt| prompt + completion)
        );
        Ok(())
    };
    runner.run(&any_request(), property).unwrap();
}
