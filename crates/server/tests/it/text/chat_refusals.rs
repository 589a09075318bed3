//! Refusals of chat calls: the right status, code and envelope, before any hold and any upstream call.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::harness::{
    CANNED_MODEL, CANNED_NAME, CannedUpstream, GatewayBuilder, Request, TestGateway, ask, with,
};

/// Case name, body, status, code, and the member that the error names.
type Refusal = (String, Vec<u8>, u16, &'static str, Option<&'static str>);

/// Valid bodies with one missing or invalid member.
fn members() -> Vec<Refusal> {
    let long_id = format!("maker/{}", "m".repeat(251));
    let kinds = ["maker/vectors", "maker/painter"].map(Value::from);
    let names = ["maker/none", "sim-chat", "chat", "MAKER/CHAT"].map(Value::from);
    let ids = [
        Value::Null,
        json!(7),
        json!(["maker/chat"]),
        json!(""),
        json!("maker//chat"),
    ];
    let ids = ids
        .into_iter()
        .chain([json!("maker/../chat"), json!(long_id), json!("a\nb")]);
    let tiers = [
        json!("flex"),
        json!("priority"),
        json!("fast"),
        json!("scale"),
        json!(1),
        json!({}),
    ];
    let mut groups: Vec<(u16, &str, &str, Vec<Value>)> = vec![
        (400, "invalid_request", "model", ids.collect()),
        (404, "model_not_found", "model", names.into()),
        (400, "model_not_supported", "model", kinds.into()),
        (
            400,
            "invalid_request",
            "messages",
            vec![Value::Null, json!([]), json!("hi"), json!({})],
        ),
        (
            400,
            "invalid_request",
            "stream",
            vec![json!("yes"), json!(1)],
        ),
        (400, "invalid_request", "n", vec![json!("2"), json!([])]),
        (
            400,
            "invalid_request",
            "max_tokens",
            vec![json!("9"), json!(true)],
        ),
        (400, "stateful_not_supported", "deferred", vec![json!(true)]),
        (400, "stateful_not_supported", "store", vec![json!(true)]),
        (
            400,
            "service_tier_not_supported",
            "service_tier",
            tiers.into(),
        ),
    ];
    for name in [
        "provider",
        "routing",
        "route",
        "routes",
        "models",
        "fallbacks",
    ] {
        let values = vec![
            json!({ "only": ["x"] }),
            json!("x"),
            json!(["x"]),
            json!(false),
        ];
        groups.push((400, "routing_not_supported", name, values));
    }
    let mut cases = Vec::new();
    for name in ["model", "messages"] {
        let mut body = ask("hello");
        body.as_object_mut().unwrap().remove(name);
        let body = body.to_string().into_bytes();
        cases.push((
            format!("no {name}"),
            body,
            400,
            "invalid_request",
            Some(name),
        ));
    }
    for (status, code, name, values) in groups {
        for value in values {
            let body = with(ask("hello"), &json!({ name: value })).to_string();
            cases.push((
                format!("{name}: {value}"),
                body.into(),
                status,
                code,
                Some(name),
            ));
        }
    }
    cases
}

fn shapes() -> Vec<Refusal> {
    let whole = ask("hello").to_string();
    let nested = |depth: usize| {
        let deep = "[".repeat(depth) + &"]".repeat(depth);
        whole.replacen('{', &format!("{{\"x\":{deep},"), 1)
    };
    let mut wide = String::from("{\"x\":{");
    for index in 0..10_001 {
        let _ = write!(wide, "\"k{index}\":0,");
    }
    wide.push_str("\"z\":0},");
    let wide = whole.replacen('{', &wide, 1);
    let double = |first: &str, second: &str| {
        format!(
            "{{\"{first}\":\"maker/chat\",\"{second}\":\"maker/vectors\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}"
        )
    };
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("spaces", b"  \n ".to_vec()),
        ("an array", b"[]".to_vec()),
        ("a text", b"\"model\"".to_vec()),
        ("no JSON", b"model=maker/chat".to_vec()),
        ("half a body", whole.as_bytes()[..whole.len() - 1].to_vec()),
        ("more behind it", format!("{whole}{{}}").into_bytes()),
        ("single quotes", whole.replace('"', "'").into_bytes()),
        (
            "a trailing comma",
            whole.replacen('}', ",}", 1).into_bytes(),
        ),
        ("a comment", format!("/* hi */{whole}").into_bytes()),
        (
            "a bare control sign",
            whole.replace("hello", "hel\u{1}lo").into_bytes(),
        ),
        (
            "NaN",
            whole.replacen('{', "{\"temperature\":NaN,", 1).into_bytes(),
        ),
        (
            "a leading zero",
            whole.replacen('{', "{\"temperature\":01,", 1).into_bytes(),
        ),
        (
            "no UTF-8",
            [&b"{\"x\":\"\xff\xfe\","[..], &whole.as_bytes()[1..]].concat(),
        ),
        (
            "a lone surrogate key escape cut",
            whole.replacen('{', "{\"\\ud83\":1,", 1).into_bytes(),
        ),
        ("depth", nested(128).into_bytes()),
        ("great depth", nested(100_000).into_bytes()),
        ("10,002 keys", wide.into_bytes()),
        ("two models", double("model", "model").into_bytes()),
        (
            "two models, one escaped",
            double("model", "mod\\u0065l").into_bytes(),
        ),
        (
            "two models, one in capitals",
            double("model", "Model").into_bytes(),
        ),
        (
            "model in capitals alone",
            whole.replace("\"model\"", "\"MODEL\"").into_bytes(),
        ),
    ];
    bodies
        .into_iter()
        .map(|(what, body)| (what.to_owned(), body, 400, "invalid_request", None))
        .collect()
}

/// L5, and the refusals that `docs/api/chat-completions.md` lists.
#[tokio::test]
async fn a_refused_call_costs_nothing_and_reaches_nobody() {
    let (gateway, key) = TestGateway::funded().await;
    let before = gateway.balance(&key).await;
    for (what, body, status, code, param) in members().into_iter().chain(shapes()) {
        for stream in [false, true] {
            let mut body = body.clone();
            if stream && body.starts_with(b"{\"") && !what.starts_with("stream") {
                body.splice(1..1, b"\"stream\":true,".iter().copied());
            }
            let request = Request::post("/v1/chat/completions")
                .bearer(&key.secret)
                .body(body);
            let answer = gateway.send(&request).await;
            assert_eq!(
                answer.failure(),
                (status, code.to_owned()),
                "{what}: {}",
                answer.text()
            );
            let error = answer.openai_error();
            assert_eq!(error["type"], "invalid_request_error", "{what}");
            if let Some(param) = param {
                assert_eq!(error["param"], param, "{what}");
            }
        }
    }
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.balance(&key).await, before);
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.verify().await;
}

/// L5: a body exactly at the limit of depth or width is accepted.
#[tokio::test]
async fn a_body_at_its_bounds_is_served() {
    let upstream = json!({
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "taken" } }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1 },
    });
    let canned = CannedUpstream::json(&upstream.to_string()).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let whole = with(ask("hello"), &json!({ "model": CANNED_MODEL })).to_string();
    // The body itself is the first level.
    let deep = whole.replacen(
        '{',
        &format!("{{\"x\":{}{},", "[".repeat(127), "]".repeat(127)),
        1,
    );
    let mut wide = String::from("{\"x\":{");
    for index in 0..9_999 {
        let _ = write!(wide, "\"k{index}\":0,");
    }
    wide.push_str("\"z\":0},");
    let wide = whole.replacen('{', &wide, 1);
    for body in [deep, wide] {
        let request = Request::post("/v1/chat/completions")
            .bearer(&key.secret)
            .body(body.as_str());
        gateway.send(&request).await.ok();
        let expected = body.replacen(CANNED_MODEL, CANNED_NAME, 1);
        assert!(
            canned.bodies().pop().unwrap() == expected.as_bytes(),
            "the bytes differ"
        );
    }
}

/// `docs/api/README.md`: an `Idempotency-Key` is refused on model calls.
#[tokio::test]
async fn an_idempotency_key_is_refused_on_model_calls_alone() {
    let (gateway, key) = TestGateway::funded().await;
    for name in ["Idempotency-Key", "idempotency-key"] {
        let request = Request::chat(&ask("hello"))
            .bearer(&key.secret)
            .header(name, "abc");
        let answer = gateway.send(&request).await;
        assert_eq!(
            answer.failure(),
            (400, "idempotency_key_not_supported".to_owned())
        );
    }
    assert_eq!(gateway.upstream_calls(), 0);
    let request = Request::get("/v1/models")
        .bearer(&key.secret)
        .header("Idempotency-Key", "abc");
    gateway.send(&request).await.ok();
}

/// Without a valid key, the answer says nothing about the body.
#[tokio::test]
async fn a_stranger_learns_nothing_from_a_wrong_body() {
    let gateway = TestGateway::start().await;
    let request = Request::post("/v1/chat/completions")
        .bearer("sk-tg-unknown")
        .body("no json");
    let answer = gateway.send(&request).await;
    assert_eq!(answer.failure(), (401, "invalid_api_key".to_owned()));
}

/// All callers share the operator's account at an upstream, so no caller may refer to objects that are stored there.
#[tokio::test]
async fn what_is_kept_upstream_cannot_be_named() {
    let (gateway, key) = TestGateway::funded().await;
    for (path, more) in [
        (
            "/v1/responses",
            json!({ "prompt": { "id": "pmpt_1" }, "input": "x" }),
        ),
        (
            "/v1/responses",
            json!({ "input": "x", "tools": [{ "type": "file_search", "vector_store_ids": ["vs_1"] }] }),
        ),
        (
            "/v1/responses",
            json!({ "input": [{ "role": "user", "content": [{ "type": "input_file", "file_id": "f" }] }] }),
        ),
        (
            "/v1/chat/completions",
            json!({ "messages": [{ "role": "user", "content": [
                { "type": "file", "file": { "file_id": "f" } },
            ] }] }),
        ),
    ] {
        let body = with(json!({ "model": "maker/chat" }), &more).to_string();
        // An escaped name is recognised too.
        for body in [body.replace("_id", "\\u005fid"), body] {
            let request = Request::post(path).bearer(&key.secret).body(body.as_str());
            let answer = gateway.send(&request).await;
            let refused = (400, "stateful_not_supported".to_owned());
            assert_eq!(answer.failure(), refused, "{body}");
        }
    }
    assert_eq!(gateway.upstream_calls(), 0);
    gateway.verify().await;
}
