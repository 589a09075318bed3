//! Chat calls with buffered answers.

use serde_json::{Value, json};

use crate::harness::{
    CANNED_MODEL, CANNED_NAME, CannedUpstream, GatewayBuilder, MODEL, Request, TestGateway,
    UPSTREAM_KEY, ask, with,
};

#[tokio::test]
async fn an_answer_carries_our_id_and_the_public_model() {
    let (gateway, key) = TestGateway::funded().await;
    let answer = gateway
        .chat(&key, &ask("say exactly: hello there"))
        .await
        .ok();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("x-request-id").unwrap().starts_with("req_"));
    let answer = answer.json();
    assert!(
        answer["id"].as_str().unwrap().starts_with("chatcmpl_"),
        "{answer}"
    );
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["model"], MODEL);
    assert!(answer["created"].is_u64());
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"]["role"], "assistant");
    assert_eq!(choice["message"]["content"], "hello there");
    assert_eq!(choice["finish_reason"], "stop");
    let usage = &answer["usage"];
    let sum =
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], sum);

    let again = gateway
        .chat(&key, &ask("say exactly: hello there"))
        .await
        .ok();
    assert_ne!(again.json()["id"], answer["id"]);
}

#[tokio::test]
async fn only_the_id_and_the_model_of_an_answer_change() {
    let upstream = concat!(
        "{ \"id\" : \"up-1\",\r\n\t\"object\":\"chat.completion\",\"created\":1.5e3 ,",
        "\"x_unknown\":{\"model\":\"nested stays\",\"id\":[1,2.0,-0]},",
        "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",",
        "\"content\":\"\\u00fc \\/ ü \\ud83d\\ude00 \\\"model\\\":\\\"x\\\"\",",
        "\"reasoning_content\":\"thought\",\"x_more\":null},\"finish_reason\":\"stop\"}],",
        "\"model\" :  \"hidden-name-1\" , \"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7,",
        "\"total_tokens\":12,\"x_cost\":0.10}\n}"
    );
    let canned = CannedUpstream::json(upstream).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let body = with(ask("hello"), &json!({ "model": CANNED_MODEL }));
    let answer = gateway.chat(&key, &body).await.ok();
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let expected = upstream
        .replace("\"up-1\"", &format!("\"{id}\""))
        .replace("\"hidden-name-1\"", &format!("\"{CANNED_MODEL}\""));
    assert_eq!(answer.text(), expected);
    assert_eq!(
        gateway.usage(&key).await,
        77,
        "5 at 1.25 and 7 at 10, rounded up"
    );
}

#[tokio::test]
async fn the_upstream_gets_the_callers_bytes_but_for_the_model() {
    let (gateway, key) = TestGateway::funded().await;
    let body = concat!(
        " {\n\t\"temperature\" : 1.0,  \"mod\\u0065l\":  \"maker/chat\" ,\"x_future\":{\"a\":[1e2,",
        "\"\\u00e9\\/\"],\"model\":\"maker/chat\"},\"messages\":[{\"role\":\"user\",\"content\":",
        "\"say exactly: ok \\u263a\"}],\"user\":\"me\",\"service_tier\":null,\"store\":false} \r\n"
    );
    let request = Request::post("/v1/chat/completions")
        .bearer(&key.secret)
        .body(body);
    gateway.send(&request).await.ok();
    let call = gateway.sim.calls().pop().unwrap();
    let expected = body.replacen("\"maker/chat\"", "\"sim-chat\"", 1);
    assert_eq!(std::str::from_utf8(&call.body).unwrap(), expected);
}

/// K5: only headers of an allow-list reach the upstream.
#[tokio::test]
async fn the_upstream_gets_our_credential_and_no_header_of_the_callers() {
    let (gateway, key) = TestGateway::funded().await;
    let request = Request::chat(&ask("hello"))
        .bearer(&key.secret)
        .header("x-forwarded-for", "203.0.113.9")
        .header("cookie", "session=1")
        .header("openai-organization", "org-caller")
        .header("x-stainless-lang", "python")
        .header("user-agent", "caller/1.0");
    gateway.send(&request).await.ok();
    let call = gateway.sim.calls().pop().unwrap();
    assert_eq!(call.path, "/v1/chat/completions");
    assert_eq!(
        call.headers["authorization"],
        format!("Bearer {UPSTREAM_KEY}")
    );
    let text = format!("{:?}", call.headers);
    for needle in [
        key.secret.as_str(),
        "203.0.113.9",
        "session",
        "org-caller",
        "stainless",
        "caller",
    ] {
        assert!(!text.contains(needle), "{needle} in {text}");
    }
}

/// Callers of Messages request betas in a header. The gateway chooses the version.
#[tokio::test]
async fn betas_reach_an_upstream_of_the_callers_own_protocol() {
    let (gateway, key) = TestGateway::funded().await;
    let body = with(ask("hello"), &json!({ "max_tokens": 50 }));
    for (target, version, beta) in [
        ("/v1/messages", Some("2023-06-01"), Some("one,two")),
        ("/v1/chat/completions", None, None),
    ] {
        let request = Request::post(target)
            .json(&body)
            .bearer(&key.secret)
            .header("anthropic-version", "2026-10-21")
            .header("anthropic-beta", "one,two");
        gateway.send(&request).await.ok();
        let call = gateway.sim.calls().pop().unwrap();
        assert_eq!(call.path, target);
        for (name, expected) in [("anthropic-version", version), ("anthropic-beta", beta)] {
            let sent = call.headers.get(name);
            let sent = sent.map(|value| value.to_str().unwrap());
            assert_eq!(sent, expected, "{target}: {name}");
        }
    }
}

#[tokio::test]
async fn members_that_are_null_are_absent() {
    let (gateway, key) = TestGateway::funded().await;
    let nulls = json!({
        "stream": null, "stream_options": null, "service_tier": null, "store": null,
        "deferred": null, "provider": null, "routing": null, "route": null, "models": null,
        "fallbacks": null, "max_tokens": null, "max_completion_tokens": null, "n": null,
        "tools": null, "tool_choice": null, "response_format": null, "stop": null, "user": null,
    });
    let answer = gateway
        .chat(&key, &with(ask("say exactly: nulls"), &nulls))
        .await
        .ok();
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "nulls");
}

/// Members that the gateway refuses are removed if they are `null`, because some upstreams refuse unknown names.
#[tokio::test]
async fn controls_that_are_null_do_not_reach_an_upstream() {
    let (gateway, key) = TestGateway::funded().await;
    let controls = json!({ "provider": null, "routing": null, "route": null, "models": null });
    for (path, body) in [
        (
            "/v1/messages",
            json!({ "model": "maker/chat", "max_tokens": 50, "thread": null,
                "messages": [{ "role": "user", "content": "hello" }] }),
        ),
        (
            "/v1beta/interactions",
            json!({ "model": "maker/chat", "input": "hello", "agent": null, "environment": null,
                "previous_interaction_id": null, "webhook_config": null }),
        ),
        (
            "/v1beta/models/maker/chat:generateContent",
            json!({ "contents": [{ "parts": [{ "text": "hello" }] }] }),
        ),
    ] {
        let body = with(body, &controls);
        let request = Request::post(path).json(&body).bearer(&key.secret);
        gateway.send(&request).await.ok();
        let call = gateway.sim.calls().pop().unwrap();
        let sent: Value = serde_json::from_slice(&call.body).unwrap();
        for (name, value) in body.as_object().unwrap() {
            assert_eq!(sent.get(name).is_none(), value.is_null(), "{path}: {sent}");
        }
    }
}

#[tokio::test]
async fn free_tiers_and_unsaid_state_pass() {
    let (gateway, key) = TestGateway::funded().await;
    for more in [
        json!({ "service_tier": "auto" }),
        json!({ "service_tier": "default" }),
        json!({ "store": false }),
        json!({ "deferred": false }),
        json!({ "metadata": { "provider": "inside is not a control" } }),
    ] {
        gateway.chat(&key, &with(ask("hello"), &more)).await.ok();
    }
}

#[tokio::test]
async fn tools_schemas_images_and_choices_go_through() {
    let (gateway, key) = TestGateway::funded().await;
    let tools = json!({ "tools": [{ "type": "function", "function": {
        "name": "get_weather",
        "parameters": { "type": "object", "properties": { "city": { "type": "string" } },
                        "required": ["city"] },
    } }] });
    let called = gateway
        .chat(&key, &with(ask("What is the weather in \"Oslo\"?"), &tools))
        .await
        .ok()
        .json();
    let message = &called["choices"][0]["message"];
    assert_eq!(called["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(message["content"], Value::Null);
    let call = &message["tool_calls"][0];
    assert_eq!(call["function"]["name"], "get_weather");

    let mut back = with(ask("What is the weather in \"Oslo\"?"), &tools);
    let messages = back["messages"].as_array_mut().unwrap();
    messages.push(message.clone());
    messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "12 degrees" }));
    let answer = gateway.chat(&key, &back).await.ok().json();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.contains("12 degrees"), "{text}");

    let schema = json!({ "response_format": { "type": "json_schema", "json_schema": {
        "name": "place", "strict": true, "schema": { "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"], "additionalProperties": false },
    } } });
    let shaped = gateway
        .chat(&key, &with(ask("Where?"), &schema))
        .await
        .ok()
        .json();
    let text = shaped["choices"][0]["message"]["content"].as_str().unwrap();
    let place: Value = serde_json::from_str(text).unwrap();
    assert!(place["name"].is_string(), "{place}");

    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = json!({ "messages": [{ "role": "user", "content": [
        { "type": "text", "text": "What is this?" },
        { "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{pixel}") } },
    ] }] });
    let seen = gateway.chat(&key, &with(ask(""), &image)).await.ok().json();
    let text = seen["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.contains("1x1"), "{text}");

    let three = gateway
        .chat(&key, &with(ask("hello"), &json!({ "n": 3 })))
        .await
        .ok()
        .json();
    assert_eq!(three["choices"].as_array().unwrap().len(), 3);
    gateway.verify().await;
}

/// Messages that an SDK has dumped are accepted as history.
#[tokio::test]
async fn dumped_history_is_taken_back() {
    let (gateway, key) = TestGateway::funded().await;
    let messages = json!({ "messages": [
        { "role": "developer", "content": "Be brief." },
        { "role": "user", "content": "My name is Ada." },
        { "content": "Hello Ada.", "refusal": null, "role": "assistant", "annotations": [] },
        { "role": "user", "content": "What is my name?" },
    ] });
    let answer = gateway
        .chat(&key, &with(ask(""), &messages))
        .await
        .ok()
        .json();
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "Your name is Ada."
    );
}

#[tokio::test]
async fn a_large_body_goes_through_unchanged() {
    let gateway = TestGateway::start().await;
    gateway.wallet("rich", &["--balance", "10000"]).await;
    let key = gateway.key("rich", &[]).await;
    let prompt = format!("summarize: {}", "a long story ".repeat(80_000));
    let body = ask(&prompt);
    let request = Request::chat(&body).bearer(&key.secret);
    gateway.send(&request).await.ok();
    let call = gateway.sim.calls().pop().unwrap();
    let expected = body
        .to_string()
        .replacen("\"maker/chat\"", "\"sim-chat\"", 1);
    assert!(call.body == expected.as_bytes(), "the bytes differ");
    assert!(!String::from_utf8_lossy(&call.body).contains(CANNED_NAME));
}
