//! Every refusal of a chat call: the right status, code and envelope, before any hold and before
//! any upstream call.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::harness::{CANNED_MODEL, CANNED_NAME, Canned, Plot, Request, Stage, ask, with};

/// What is refused, with which status and code, and which member is named.
type Refusal = (
    &'static str,
    Vec<u8>,
    u16,
    &'static str,
    Option<&'static str>,
);

fn case(
    what: &'static str,
    body: &Value,
    status: u16,
    code: &'static str,
    param: &'static str,
) -> Refusal {
    (
        what,
        body.to_string().into_bytes(),
        status,
        code,
        Some(param),
    )
}

fn members() -> Vec<Refusal> {
    let without = |name: &str| {
        let mut body = ask("hello");
        body.as_object_mut().unwrap().remove(name);
        body
    };
    let but = |more: Value| with(ask("hello"), &more);
    let long_id = format!("maker/{}", "m".repeat(251));
    let mut cases = vec![
        case(
            "no model",
            &without("model"),
            400,
            "invalid_request",
            "model",
        ),
        case(
            "null model",
            &but(json!({ "model": null })),
            400,
            "invalid_request",
            "model",
        ),
        case(
            "model no text",
            &but(json!({ "model": 7 })),
            400,
            "invalid_request",
            "model",
        ),
        case(
            "empty model",
            &but(json!({ "model": "" })),
            400,
            "invalid_request",
            "model",
        ),
        case(
            "empty part",
            &but(json!({ "model": "maker//chat" })),
            400,
            "invalid_request",
            "model",
        ),
        case(
            "dots",
            &but(json!({ "model": "maker/../chat" })),
            400,
            "invalid_request",
            "model",
        ),
        case(
            "257 bytes",
            &but(json!({ "model": long_id })),
            400,
            "invalid_request",
            "model",
        ),
        case(
            "unknown model",
            &but(json!({ "model": "maker/none" })),
            404,
            "model_not_found",
            "model",
        ),
        case(
            "upstream's name",
            &but(json!({ "model": "sim-chat" })),
            404,
            "model_not_found",
            "model",
        ),
        case(
            "embeddings",
            &but(json!({ "model": "maker/vectors" })),
            400,
            "model_not_supported",
            "model",
        ),
        case(
            "image output",
            &but(json!({ "model": "maker/painter" })),
            400,
            "model_not_supported",
            "model",
        ),
        case(
            "no messages",
            &without("messages"),
            400,
            "invalid_request",
            "messages",
        ),
        case(
            "null messages",
            &but(json!({ "messages": null })),
            400,
            "invalid_request",
            "messages",
        ),
        case(
            "empty messages",
            &but(json!({ "messages": [] })),
            400,
            "invalid_request",
            "messages",
        ),
        case(
            "messages a text",
            &but(json!({ "messages": "hi" })),
            400,
            "invalid_request",
            "messages",
        ),
        case(
            "stream a text",
            &but(json!({ "stream": "yes" })),
            400,
            "invalid_request",
            "stream",
        ),
        case(
            "n a text",
            &but(json!({ "n": "2" })),
            400,
            "invalid_request",
            "n",
        ),
        case(
            "max_tokens a text",
            &but(json!({ "max_tokens": "9" })),
            400,
            "invalid_request",
            "max_tokens",
        ),
        case(
            "deferred",
            &but(json!({ "deferred": true })),
            400,
            "stateful_not_supported",
            "deferred",
        ),
        case(
            "store",
            &but(json!({ "store": true })),
            400,
            "stateful_not_supported",
            "store",
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
        for value in [
            json!({ "only": ["x"] }),
            json!("x"),
            json!(["x"]),
            json!(false),
        ] {
            cases.push(case(
                name,
                &but(json!({ name: value })),
                400,
                "routing_not_supported",
                name,
            ));
        }
    }
    for tier in [
        json!("flex"),
        json!("priority"),
        json!("fast"),
        json!("scale"),
        json!(1),
        json!({}),
    ] {
        let body = but(json!({ "service_tier": tier }));
        cases.push(case(
            "tier",
            &body,
            400,
            "service_tier_not_supported",
            "service_tier",
        ));
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
        .map(|(what, body)| (what, body, 400, "invalid_request", None))
        .collect()
}

/// Contract, chat and common rules; limits of reliability 4 on JSON.
#[tokio::test]
async fn a_refused_call_costs_nothing_and_reaches_nobody() {
    let (stage, key) = Stage::funded().await;
    let before = stage.balance(&key).await;
    for (what, body, status, code, param) in members().into_iter().chain(shapes()) {
        for stream in [false, true] {
            let mut body = body.clone();
            if stream && body.starts_with(b"{\"") && what != "stream a text" {
                body.splice(1..1, b"\"stream\":true,".iter().copied());
            }
            let request = Request::post("/v1/chat/completions")
                .bearer(&key.secret)
                .body(body);
            let answer = stage.send(&request).await;
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
    assert_eq!(stage.upstream_calls(), 0);
    assert_eq!(stage.balance(&key).await, before);
    stage.chat(&key, &ask("hello")).await.ok();
    stage.verify().await;
}

/// Limits: what stands exactly at a bound is taken.
#[tokio::test]
async fn a_body_at_its_bounds_is_served() {
    let upstream = json!({
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "taken" } }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1 },
    });
    let canned = Canned::json(&upstream.to_string()).await;
    let (stage, key) = Plot::default().entries(&canned.entries()).funded().await;
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
        stage.send(&request).await.ok();
        let expected = body.replacen(CANNED_MODEL, CANNED_NAME, 1);
        assert!(
            canned.bodies().pop().unwrap() == expected.as_bytes(),
            "the bytes differ"
        );
    }
}

/// Contract, common rules 2.
#[tokio::test]
async fn an_idempotency_key_is_refused_on_model_calls_alone() {
    let (stage, key) = Stage::funded().await;
    for name in ["Idempotency-Key", "idempotency-key"] {
        let request = Request::chat(&ask("hello"))
            .bearer(&key.secret)
            .header(name, "abc");
        let answer = stage.send(&request).await;
        assert_eq!(
            answer.failure(),
            (400, "idempotency_key_not_supported".to_owned())
        );
    }
    assert_eq!(stage.upstream_calls(), 0);
    let request = Request::get("/v1/models")
        .bearer(&key.secret)
        .header("Idempotency-Key", "abc");
    stage.send(&request).await.ok();
}

/// What is wrong is told before who is asking pays for it, and never to strangers.
#[tokio::test]
async fn a_stranger_learns_nothing_from_a_wrong_body() {
    let stage = Stage::open().await;
    let request = Request::post("/v1/chat/completions")
        .bearer("sk-tg-unknown")
        .body("no json");
    let answer = stage.send(&request).await;
    assert_eq!(answer.failure(), (401, "invalid_api_key".to_owned()));
}
