//! Tests of requests.

use serde_json::{Value, json};

use super::*;

/// The request in this notation, and the names of the dropped members.
fn rewritten(request: &Value, betas: &[&str]) -> (Value, String) {
    let mut dropped = Dropped::new(Dialect::Messages);
    let body = rewrite_request(request.to_string().as_bytes(), betas, &mut dropped).unwrap();
    let body = serde_json::from_slice(&body).unwrap();
    (body, dropped.names().join(","))
}

fn user(content: &Value) -> Value {
    json!({ "max_tokens": 9, "messages": [{ "role": "user", "content": content }] })
}

#[test]
fn a_request_has_the_same_parts_under_other_names() {
    let request = json!({
        "model": "m", "stream": true, "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 3,
        "stop_sequences": ["x"], "thinking": { "type": "enabled", "budget_tokens": 1024 },
        "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral", "ttl": "1h" } }],
        "messages": [
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "s" },
                { "type": "redacted_thinking", "data": "QQ==" },
                { "type": "text", "text": "ok" },
                { "type": "tool_use", "id": "t", "name": "look", "input": { "b": 1, "a": 1.50 } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "no",
                  "cache_control": { "type": "ephemeral" } },
            ] },
            { "role": "user", "content": [
                { "type": "image", "source": { "type": "base64", "media_type": "image/jpg", "data": "AAAA" } },
                { "type": "document", "title": "a_b  (c).pdf",
                  "source": { "type": "base64", "media_type": "application/pdf", "data": "BBBB" } },
                { "type": "document", "context": "about", "citations": { "enabled": true },
                  "source": { "type": "text", "media_type": "text/plain", "data": "abc" } },
            ] },
        ],
        "tools": [{ "name": "look", "description": "", "input_schema": { "type": "object" }, "strict": true,
                    "cache_control": { "type": "ephemeral" } }],
        "tool_choice": { "type": "any" },
        "output_config": { "effort": "low", "format": { "type": "json_schema", "schema": { "type": "object" } } },
    });
    let expected = json!({
        "system": [{ "text": "Be brief." }, { "cachePoint": { "type": "default", "ttl": "1h" } }],
        "messages": [
            { "role": "user", "content": [{ "text": "Hi" }] },
            { "role": "assistant", "content": [
                { "reasoningContent": { "reasoningText": { "text": "hm", "signature": "s" } } },
                { "reasoningContent": { "redactedContent": "QQ==" } },
                { "text": "ok" },
                { "toolUse": { "toolUseId": "t", "name": "look", "input": { "b": 1, "a": 1.50 } } },
            ] },
            { "role": "user", "content": [
                { "toolResult": { "toolUseId": "t", "status": "error", "content": [{ "text": "no" }] } },
                { "cachePoint": { "type": "default" } },
                { "image": { "format": "jpeg", "source": { "bytes": "AAAA" } } },
                { "document": { "format": "pdf", "name": "a b (c) pdf", "source": { "bytes": "BBBB" } } },
                { "document": { "format": "txt", "name": "document", "source": { "bytes": "YWJj" },
                                "context": "about", "citations": { "enabled": true } } },
            ] },
        ],
        "inferenceConfig": { "maxTokens": 9, "temperature": 0.5, "topP": 0.9, "stopSequences": ["x"] },
        "additionalModelResponseFieldPaths": ["/stop_sequence"],
        "toolConfig": {
            "tools": [
                { "toolSpec": { "name": "look", "inputSchema": { "json": { "type": "object" } }, "strict": true } },
                { "cachePoint": { "type": "default" } },
            ],
            "toolChoice": { "any": {} },
        },
        "outputConfig": {
            "effort": "low",
            "textFormat": {
                "type": "json_schema",
                "structure": { "jsonSchema": { "schema": "{\"type\":\"object\"}" } },
            },
        },
        "additionalModelRequestFields": {
            "top_k": 3, "thinking": { "type": "enabled", "budget_tokens": 1024 }, "anthropic_beta": ["a-1", "b-2"],
        },
    });
    assert_eq!(
        rewritten(&request, &["a-1", "b-2"]),
        (expected, String::new())
    );
}

#[test]
fn members_without_a_form_are_dropped_by_name() {
    let request = json!({
        "max_tokens": 9, "service_tier": "auto", "metadata": { "user_id": "u" }, "container": null,
        "output_config": { "task_budget": { "total": 1 } },
        "tools": [
            { "type": "web_search_20250305", "name": "web_search" },
            { "type": "custom", "name": "look", "input_schema": {}, "defer_loading": true },
        ],
        "tool_choice": { "type": "auto", "disable_parallel_tool_use": true },
        "messages": [
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": [{ "type": "server_tool_use", "id": "s", "name": "web_search" }] },
            { "role": "user", "content": [
                { "type": "search_result", "source": "x" },
                { "type": "tool_result", "tool_use_id": "t", "content": [
                    { "type": "text", "text": "found", "cache_control": { "type": "ephemeral" } },
                    { "type": "tool_reference" },
                ] },
            ] },
        ],
    });
    let (body, dropped) = rewritten(&request, &[]);
    assert_eq!(
        dropped,
        "messages[1].content[0],messages[2].content[0],messages[2].content[1].content[0].cache_control,\
         messages[2].content[1].content[1],tools.web_search_20250305,tools[1].defer_loading,\
         output_config.task_budget,service_tier,tool_choice.disable_parallel_tool_use,metadata.user_id"
    );
    // A turn with nothing left to send is removed, and its neighbours become one turn.
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{body}");
    assert_eq!(body["toolConfig"]["toolChoice"], json!({ "auto": {} }));
}

#[test]
fn tools_that_may_not_be_called_go_unless_the_history_has_calls() {
    let tools = json!([{ "name": "look", "input_schema": { "type": "object" } }]);
    let call = json!([{ "type": "tool_use", "id": "t", "name": "look", "input": {} }]);
    for (content, stays) in [(json!("Hi"), false), (call, true)] {
        let request = json!({
            "messages": [{ "role": "assistant", "content": content }],
            "tools": tools,
            "tool_choice": { "type": "none" },
        });
        let (body, dropped) = rewritten(&request, &[]);
        assert_eq!(body.get("toolConfig").is_some(), stays, "{body}");
        assert!(body["toolConfig"].get("toolChoice").is_none());
        assert_eq!(dropped, if stays { "tool_choice" } else { "" });
    }
}

#[test]
fn ids_of_calls_are_short_and_still_fit_their_results() {
    let long = "x".repeat(200);
    for id in [long.as_str(), "a b/c", ""] {
        let request = json!({ "messages": [
            { "role": "assistant", "content": [{ "type": "tool_use", "id": id, "name": "look", "input": {} }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id }] },
        ] });
        let (body, _) = rewritten(&request, &[]);
        let call = body["messages"][0]["content"][0]["toolUse"]["toolUseId"].as_str();
        let result = body["messages"][1]["content"][0]["toolResult"]["toolUseId"].as_str();
        assert_eq!(call, result);
        let call = call.unwrap();
        assert!((1..=64).contains(&call.len()), "{call}");
        assert!(
            call.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
        );
    }
}

#[test]
fn names_of_documents_differ() {
    let source = json!({ "type": "text", "media_type": "text/plain", "data": "abc" });
    let document = json!({ "type": "document", "title": "same", "source": source });
    let (body, _) = rewritten(&user(&json!([document, document, document])), &[]);
    let content = body["messages"][0]["content"].as_array().unwrap();
    let names: Vec<_> = content.iter().map(|it| &it["document"]["name"]).collect();
    assert_eq!(names, ["same", "same 2", "same 3"]);
}

#[test]
fn what_has_no_form_and_is_needed_is_refused() {
    let image = |source: Value| json!([{ "type": "image", "source": source }]);
    let document = |source: Value| json!([{ "type": "document", "source": source }]);
    for content in [
        image(json!({ "type": "url", "url": "https://a.example/b.png" })),
        image(json!({ "type": "base64", "media_type": "image/tiff", "data": "AAAA" })),
        image(json!(1)),
        document(json!({ "type": "url", "url": "https://a.example/b.pdf" })),
        document(json!({ "type": "base64", "media_type": "text/csv", "data": "AAAA" })),
        json!([{ "type": "server_tool_use" }]),
        json!([1]),
        json!(1),
        json!("  "),
        json!([]),
    ] {
        let body = user(&content).to_string();
        let mut dropped = Dropped::new(Dialect::Messages);
        let refused = rewrite_request(body.as_bytes(), &[], &mut dropped).unwrap_err();
        assert_eq!(refused.status(), 400, "{content}");
    }
    for body in [
        "",
        "[]",
        "{}",
        r#"{"messages":1}"#,
        r#"{"messages":[]}"#,
        r#"{"messages":[{"role":"user"}]}"#,
        r#"{"messages":[{"role":"user","content":"a"}],"tools":[{"name":"x"}]}"#,
        r#"{"messages":[{"role":"user","content":"a"}],"tools":1}"#,
        r#"{"messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"x"}}"#,
    ] {
        let mut dropped = Dropped::new(Dialect::Messages);
        let refused = rewrite_request(body.as_bytes(), &[], &mut dropped);
        assert!(refused.is_err(), "{body}");
    }
}

#[test]
fn parameters_of_anthropic_are_sent_to_its_models_alone() {
    for (model, is_sent) in [
        ("anthropic.claude-sonnet-4-v1:0", true),
        ("us.anthropic.claude-sonnet-4-v1:0", true),
        (
            "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc",
            true,
        ),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x",
            true,
        ),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.amazon.nova-pro-v1:0",
            false,
        ),
        ("amazon.nova-pro-v1:0", false),
        ("eu.meta.llama3-3-70b-instruct-v1:0", false),
    ] {
        let mut request = user(&json!("Hi"));
        request["model"] = json!(model);
        request["top_k"] = json!(3);
        request["thinking"] = json!({ "type": "adaptive" });
        let (body, dropped) = rewritten(&request, &["a-1"]);
        let is_there = body.get("additionalModelRequestFields").is_some();
        assert_eq!(is_there, is_sent, "{model}");
        let expected = if is_sent { "" } else { "top_k,thinking" };
        assert_eq!(dropped, expected, "{model}");
    }
}

#[test]
fn titles_of_documents_cannot_make_the_search_for_a_name_long() {
    let count = 20_000;
    let title = |n: usize| match n {
        _ if n < count => format!("a {}", count + 1 + n),
        _ => "a".to_owned(),
    };
    let documents: Vec<Value> = (0..2 * count)
        .map(|n| {
            json!({ "type": "document", "title": title(n),
                    "source": { "type": "text", "media_type": "text/plain", "data": "x" } })
        })
        .collect();
    let (body, _) = rewritten(&user(&json!(documents)), &[]);
    let content = body["messages"][0]["content"].as_array().unwrap();
    let names: std::collections::HashSet<&str> = content
        .iter()
        .map(|it| it["document"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 2 * count);
}
