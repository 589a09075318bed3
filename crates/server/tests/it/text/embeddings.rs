//! Embeddings: `/v1/embeddings`, `:embedContent` and its batch.
#![expect(clippy::float_arithmetic, reason = "vectors are compared")]

use serde_json::{Value, json};
use sim::count_tokens;

use crate::harness::{
    CANNED_MODEL, CannedUpstream, GatewayBuilder, Key, Request, TestGateway, with,
};

const MODEL: &str = "maker/vectors";

/// Models that differ in the form, the encoding or the usage that their upstream supports. They have the price of the
/// test gateway's own model.
const ENTRIES: &str = r#"
[[channel]]
name = "contents"
preset = "sim"
base_url = "http://SIM/v1"
protocols = ["generate"]
[[channel]]
name = "lists"
preset = "sim"
base_url = "http://SIM/v1"
protocols = ["embeddings"]
[[model]]
id = "maker/contents"
kind = "embedding"
routes = [{ channel = "contents", model = "sim-embed" }]
price = { input = "0.1" }
[[model]]
id = "maker/lists"
kind = "embedding"
routes = [{ channel = "lists", model = "sim-embed" }]
price = { input = "0.1" }
[[model]]
id = "maker/told"
kind = "embedding"
routes = [{ channel = "contents", model = "sim-embed+usage=unasked" }]
price = { input = "0.1" }
[[model]]
id = "maker/floats"
kind = "embedding"
routes = [{ channel = "main", model = "sim-embed-float" }]
price = { input = "0.1" }
[[model]]
id = "maker/base64"
kind = "embedding"
routes = [{ channel = "main", model = "sim-embed-base64" }]
price = { input = "0.1" }
[[model]]
id = "maker/silent"
kind = "embedding"
routes = [{ channel = "main", model = "sim-embed+no-usage" }]
price = { input = "0.1" }
"#;

async fn gateway() -> (TestGateway, Key) {
    GatewayBuilder::default().entries(ENTRIES).funded().await
}

fn request(key: &Key, body: &Value) -> Request {
    Request::post("/v1/embeddings")
        .json(body)
        .bearer(&key.secret)
}

fn contents(key: &Key, model: &str, action: &str, body: &Value) -> Request {
    Request::post(&format!("/v1beta/models/{model}:{action}"))
        .json(body)
        .header("x-goog-api-key", &key.secret)
}

/// The cost of tokens at 0.1 credits per million.
fn price(tokens: u64) -> u64 {
    tokens.div_ceil(10)
}

fn decoded(base64: &Value) -> Vec<f64> {
    let bytes = base64_bytes(base64.as_str().unwrap());
    let (values, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    values
        .iter()
        .map(|it| f64::from(f32::from_le_bytes(*it)))
        .collect()
}

fn base64_bytes(text: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = Vec::new();
    for sign in text.trim_end_matches('=').bytes() {
        let value = alphabet.iter().position(|it| *it == sign).unwrap();
        bits.extend((0..6).rev().map(|at| value >> at & 1));
    }
    let (whole, _) = bits.as_chunks::<8>();
    let byte = |bits: &[usize; 8]| bits.iter().fold(0, |byte, bit| byte << 1 | bit);
    whole
        .iter()
        .map(|bits| u8::try_from(byte(bits)).unwrap())
        .collect()
}

fn nearness(one: &Value, other: &Value) -> f64 {
    let numbers = |it: &Value| -> Vec<f64> {
        let list = it.as_array().unwrap().iter();
        list.map(|value| value.as_f64().unwrap()).collect()
    };
    let (one, other) = (numbers(one), numbers(other));
    one.iter().zip(&other).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn all_four_forms_of_input_are_answered_in_order_and_billed_on_their_tokens() {
    let (gateway, key) = gateway().await;
    let mut spent = 0;
    for (input, count) in [
        (json!("the cat sleeps"), 1),
        (json!(["the cat sleeps", "the cat slept", "stocks fell"]), 3),
        (json!([5, 6, 7]), 1),
        (json!([[5, 6], [7]]), 2),
    ] {
        let body = json!({ "model": MODEL, "input": input, "dimensions": 64 });
        let answer = gateway.send(&request(&key, &body)).await.ok().json();
        assert_eq!(answer["object"], "list");
        assert_eq!(answer["model"], MODEL);
        let data = answer["data"].as_array().unwrap();
        assert_eq!(data.len(), count);
        for (index, item) in data.iter().enumerate() {
            assert_eq!(item["index"], index);
            assert_eq!(item["embedding"].as_array().unwrap().len(), 64);
            assert!((nearness(&item["embedding"], &item["embedding"]) - 1.0).abs() < 1e-3);
        }
        if count == 3 {
            let near = nearness(&data[0]["embedding"], &data[1]["embedding"]);
            let far = nearness(&data[0]["embedding"], &data[2]["embedding"]);
            assert!(near > far, "{near} {far}");
        }
        spent += price(answer["usage"]["prompt_tokens"].as_u64().unwrap());
        assert_eq!(gateway.usage(&key).await, spent, "{input}");
    }
    gateway.verify().await;
}

#[tokio::test]
async fn only_the_model_of_an_answer_changes() {
    let upstream = "{ \"object\":\"list\",\n\"data\":[{\"index\":0,\"embedding\":[1.0e-2, -0.50],\
        \"x\":\"model\"}],\"model\" : \"hidden-name-1\",\"usage\":{\"prompt_tokens\":7,\"total_tokens\":7}}";
    let canned = CannedUpstream::json(upstream).await;
    let entries = canned.entries_of("embedding", "{ input = \"0.1\" }", "{}");
    let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
    let body = format!("{{\"x_new\":[1e3],\"model\":\"{CANNED_MODEL}\", \"input\" : \"hi\"}}");
    let call = Request::post("/v1/embeddings")
        .bearer(&key.secret)
        .body(body.clone());
    let answer = gateway.send(&call).await.ok();
    assert_eq!(
        answer.text(),
        upstream.replace("hidden-name-1", CANNED_MODEL)
    );
    let sent = canned.bodies().pop().unwrap();
    let expected = body.replace(CANNED_MODEL, "hidden-name-1");
    assert_eq!(String::from_utf8(sent).unwrap(), expected);
    assert_eq!(gateway.usage(&key).await, 1, "7 tokens at 0.1, rounded up");
}

/// Callers can request both encodings, even if the upstream knows only one.
#[tokio::test]
async fn vectors_come_in_the_encoding_that_was_asked_for() {
    let (gateway, key) = gateway().await;
    for model in [MODEL, "maker/floats", "maker/base64", "maker/contents"] {
        let body = json!({ "model": model, "input": "a b", "dimensions": 8 });
        let floats = gateway.send(&request(&key, &body)).await.ok().json();
        let floats = floats["data"][0]["embedding"].as_array().unwrap().clone();
        let more = json!({ "encoding_format": "base64" });
        let base64 = gateway.send(&request(&key, &with(body, &more))).await.ok();
        let base64 = decoded(&base64.json()["data"][0]["embedding"]);
        assert_eq!(floats.len(), 8);
        for (float, base64) in floats.iter().zip(base64) {
            assert!((float.as_f64().unwrap() - base64).abs() < 1e-6, "{model}");
        }
    }
}

/// Without a usage report, the estimate is billed and shown to the caller.
#[tokio::test]
async fn missing_usage_is_the_estimate() {
    let (gateway, key) = gateway().await;
    let body = json!({ "model": "maker/silent", "input": "one two three four five six" });
    let answer = gateway.send(&request(&key, &body)).await.ok().json();
    let tokens = answer["usage"]["prompt_tokens"].as_u64().unwrap();
    assert!((3..30).contains(&tokens), "{tokens}");
    assert_eq!(answer["usage"]["total_tokens"], tokens);
    assert_eq!(gateway.usage(&key).await, price(tokens));
    gateway.verify().await;
}

#[tokio::test]
async fn a_model_behind_contents_is_reached_by_lists() {
    let (gateway, key) = gateway().await;
    let body = json!({ "model": "maker/told", "input": ["a cat", "a dog"], "dimensions": 16,
                       "user": "u-1", "x_more": 1 });
    let answer = gateway.send(&request(&key, &body)).await.ok();
    assert_eq!(answer.header("x-dropped-params"), Some("user,x_more"));
    let answer = answer.json();
    assert_eq!(answer["model"], "maker/told");
    assert_eq!(answer["data"][1]["index"], 1);
    assert_eq!(answer["data"][1]["embedding"].as_array().unwrap().len(), 16);
    let tokens = count_tokens("a cat") + count_tokens("a dog");
    assert_eq!(answer["usage"]["prompt_tokens"], tokens);
    assert_eq!(gateway.usage(&key).await, price(tokens));
    let call = gateway.sim.calls().pop().unwrap();
    assert!(call.path.ends_with(":batchEmbedContents"), "{}", call.path);

    let before = gateway.upstream_calls();
    let tokens = json!({ "model": "maker/contents", "input": [1, 2, 3] });
    let refused = gateway.send(&request(&key, &tokens)).await;
    assert_eq!(refused.failure(), (400, "invalid_request".to_owned()));
    assert_eq!(gateway.upstream_calls(), before);
    assert_eq!(gateway.frozen(&key).await, 0);
}

#[tokio::test]
async fn contents_are_answered_by_upstreams_of_either_form() {
    let (gateway, key) = gateway().await;
    for model in ["maker/contents", "maker/lists"] {
        let one = json!({ "content": { "parts": [{ "text": "a cat" }] }, "taskType": "SEMANTIC_SIMILARITY",
                          "outputDimensionality": 16 });
        let answer = gateway
            .send(&contents(&key, model, "embedContent", &one))
            .await
            .ok();
        let dropped = answer.header("x-dropped-params");
        assert_eq!(dropped, (model == "maker/lists").then_some("taskType"));
        let values = answer.json()["embedding"]["values"].clone();
        assert_eq!(values.as_array().unwrap().len(), 16, "{model}");

        let path = format!("models/{model}");
        let batch = json!({ "requests": [
            { "model": path, "content": { "parts": [{ "text": "a cat" }] }, "output_dimensionality": 16 },
            { "model": path, "content": { "parts": [{ "text": "a dog" }] }, "output_dimensionality": 16 },
        ] });
        let answer = gateway
            .send(&contents(&key, model, "batchEmbedContents", &batch))
            .await
            .ok();
        let answer = answer.json();
        let list = answer["embeddings"].as_array().unwrap();
        assert_eq!(list.len(), 2);
        assert!(nearness(&list[0]["values"], &values) > 0.999);
        assert!(!answer.to_string().contains("sim-embed"), "{answer}");
    }
    gateway.verify().await;
}

#[tokio::test]
async fn what_is_refused_costs_nothing_and_reaches_nobody() {
    let (gateway, key) = gateway().await;
    for (body, code) in [
        (json!({ "input": "x" }), "invalid_request"),
        (json!({ "model": MODEL }), "invalid_request"),
        (json!({ "model": MODEL, "input": "" }), "invalid_request"),
        (json!({ "model": MODEL, "input": [] }), "invalid_request"),
        (
            json!({ "model": MODEL, "input": ["a", ""] }),
            "invalid_request",
        ),
        (json!({ "model": MODEL, "input": [[]] }), "invalid_request"),
        (
            json!({ "model": MODEL, "input": "x", "provider": {} }),
            "routing_not_supported",
        ),
        (
            json!({ "model": MODEL, "input": "x", "service_tier": "priority" }),
            "service_tier_not_supported",
        ),
        (
            json!({ "model": "maker/chat", "input": "x" }),
            "model_not_supported",
        ),
        (
            json!({ "model": "maker/none", "input": "x" }),
            "model_not_found",
        ),
    ] {
        let refused = gateway.send(&request(&key, &body)).await;
        assert_eq!(refused.failure().1, code, "{body}");
    }
    let google = json!({ "content": { "parts": [] } });
    let refused = gateway
        .send(&contents(&key, "maker/contents", "embedContent", &google))
        .await;
    assert_eq!(refused.status(), 400);
    assert_eq!(refused.json()["error"]["status"], "INVALID_ARGUMENT");
    let other = json!({ "model": "models/maker/other", "content": { "parts": [{ "text": "x" }] } });
    let refused = gateway
        .send(&contents(&key, "maker/contents", "embedContent", &other))
        .await;
    assert_eq!(refused.status(), 400);
    let with_key = Request::post("/v1/embeddings")
        .json(&json!({ "model": MODEL, "input": "x" }))
        .header("idempotency-key", "1")
        .bearer(&key.secret);
    let refused = gateway.send(&with_key).await;
    assert_eq!(refused.failure().1, "idempotency_key_not_supported");
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.usage(&key).await, 0);
}

#[tokio::test]
async fn an_upstream_that_fails_costs_nothing() {
    let entry = |id: &str, script: &str| {
        format!(
            "[[model]]\nid = \"maker/{id}\"\nkind = \"embedding\"\n\
             routes = [{{ channel = \"main\", model = \"sim-embed+{script}\" }}]\n\
             price = {{ input = \"0.1\" }}\n"
        )
    };
    let cases = [
        ("a", "error-in-200", 502, "upstream_error"),
        ("b", "empty-object", 502, "upstream_error"),
        ("c", "garbage", 502, "upstream_error"),
        ("d", "status=429", 503, "upstream_overloaded"),
        ("e", "status=400", 400, "upstream_rejected"),
        ("f", "cut=content", 502, "upstream_error"),
    ];
    let entries: String = cases
        .iter()
        .map(|(id, script, ..)| entry(id, script))
        .collect();
    let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
    for (id, script, status, code) in cases {
        let body = json!({ "model": format!("maker/{id}"), "input": "x" });
        let answer = gateway.send(&request(&key, &body)).await;
        assert_eq!(answer.failure(), (status, code.to_owned()), "{script}");
    }
    assert_eq!(gateway.usage(&key).await, 0);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

/// A report of zero tokens counts as missing: the tokens are counted, and the caller sees the count.
#[tokio::test]
async fn vectors_are_not_free_where_no_tokens_are_reported() {
    let answer = r#"{"object":"list","data":[{"index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":0,"total_tokens":0}}"#;
    let canned = CannedUpstream::json(answer).await;
    let entries = canned.entries_of("embedding", r#"{ input = "1000" }"#, "{}");
    let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
    let body = json!({ "model": CANNED_MODEL, "input": "the quick brown fox" });
    let counted = gateway.send(&request(&key, &body)).await.ok().json();
    let tokens = counted["usage"]["total_tokens"].as_u64().unwrap();
    assert!(tokens > 0);
    assert_eq!(gateway.usage(&key).await, tokens * 1_000);
    gateway.verify().await;
}
