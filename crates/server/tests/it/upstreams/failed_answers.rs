//! Failures of upstreams during buffered calls: what the caller sees and what is charged.

use serde_json::{Value, json};

use crate::harness::{GatewayBuilder, Key, Request, TestGateway, ask, cost, expected_cost, with};

/// A test gateway with short timeouts and small limits.
async fn with_short_timeouts() -> (TestGateway, Key) {
    GatewayBuilder::default()
        .setting("timeouts", "upstream_first_byte_ms = 1000")
        .setting("timeouts", "upstream_idle_ms = 1000")
        .setting("limits", "answer_text_bytes = 200000")
        .funded()
        .await
}

/// B3: nothing was delivered, so nothing is charged.
#[tokio::test]
async fn a_call_that_gets_no_answer_costs_nothing() {
    let (gateway, key) = with_short_timeouts().await;
    let table = [
        ("status=400", 400, "upstream_rejected"),
        ("status=409", 409, "upstream_rejected"),
        ("status=413", 413, "upstream_rejected"),
        ("status=422", 422, "upstream_rejected"),
        ("status=402", 502, "upstream_error"),
        ("status=404", 502, "upstream_error"),
        ("status=408", 504, "upstream_timeout"),
        ("status=429", 503, "upstream_overloaded"),
        ("status=429:retry-after=7", 503, "upstream_overloaded"),
        ("status=500", 502, "upstream_error"),
        ("status=502", 502, "upstream_error"),
        ("status=503", 503, "upstream_overloaded"),
        ("status=529", 503, "upstream_overloaded"),
        ("status=302", 502, "upstream_error"),
        ("hang=head", 504, "upstream_timeout"),
        ("hang=body", 504, "upstream_timeout"),
        ("hang=content", 504, "upstream_timeout"),
        ("reset=head", 502, "upstream_error"),
        ("cut=head", 502, "upstream_error"),
        ("reset=body", 502, "upstream_error"),
        ("reset=1", 502, "upstream_error"),
        ("reset=content", 502, "upstream_error"),
        ("cut=body", 502, "upstream_error"),
        ("cut=100", 502, "upstream_error"),
        ("cut=content", 502, "upstream_error"),
        ("truncate=body", 502, "upstream_error"),
        ("truncate=1", 502, "upstream_error"),
        ("truncate=content", 502, "upstream_error"),
        ("garbage", 502, "upstream_error"),
        ("wrong-type", 502, "upstream_error"),
        ("wrong-type=swapped", 502, "upstream_error"),
        ("empty-object", 502, "upstream_error"),
        ("error-in-200", 502, "upstream_error"),
        ("invalid-utf8", 502, "upstream_error"),
        ("endless-line", 502, "upstream_error"),
        ("reply-bytes=300000", 502, "upstream_error"),
    ];
    let mut spent = 0;
    for (faults, status, code) in table {
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        let before = gateway.upstream_calls();
        let answer = gateway.chat(&key, &ask("say exactly: never")).await;
        assert_eq!(
            answer.failure(),
            (status, code.to_owned()),
            "{faults}: {}",
            answer.text()
        );
        assert_eq!(
            gateway.upstream_calls(),
            before + 1,
            "{faults}: one route, one try"
        );
        if status == 503 {
            let wait: u32 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{faults}: {wait}");
        }
        assert_eq!(gateway.usage(&key).await, spent, "{faults}");
        assert_eq!(gateway.frozen(&key).await, 0, "{faults}");
        // The next call is not affected.
        let answer = gateway.chat(&key, &ask("say exactly: fine")).await.ok();
        spent += expected_cost(&answer.json()["usage"]);
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_refusal_of_the_upstream_is_told_in_cleaned_words() {
    let (gateway, key) = TestGateway::funded().await;
    let body = with(ask("hello"), &json!({ "temperature": 9 }));
    let answer = gateway.chat(&key, &body).await;
    assert_eq!(answer.failure(), (400, "upstream_rejected".to_owned()));
    let error = answer.openai_error();
    assert_eq!(error["param"], "temperature");
    assert_eq!(error["type"], "invalid_request_error");
    assert_eq!(gateway.usage(&key).await, 0);

    gateway
        .sim
        .queue_faults("sim-chat", "status=429:retry-after=9999", 1)
        .unwrap();
    let answer = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(answer.header("retry-after"), Some("60"), "capped");
}

/// If the upstream refuses our credential, the answer is 502 and the channel is disabled. Its models are no longer
/// listed, but calls get 503 with the advice to retry.
#[tokio::test]
async fn a_refused_credential_takes_the_channel_out() {
    let (gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "status=401", 1)
        .unwrap();
    let answer = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(answer.failure(), (502, "upstream_error".to_owned()));
    let listed = gateway.get(&key, "/v1/models").await.ok().json();
    assert_eq!(listed["data"], json!([]));
    let answer = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(answer.failure(), (503, "service_unavailable".to_owned()));
    assert!(answer.header("retry-after").is_some());
    assert_eq!(gateway.upstream_calls(), 1);
    assert_eq!(gateway.usage(&key).await, 0);
    let alarmed = |line: &str| line.contains("\"ERROR\"") && line.contains("credential");
    gateway.logged("the alarm", alarmed).await;
}

/// N6, B4: if the usage is missing, invalid, or zero beside output, the gateway bills its own count.
#[tokio::test]
async fn usage_that_is_none_is_counted_by_us() {
    let (gateway, key) = TestGateway::funded().await;
    let body = with(
        ask("say exactly: one two three four five six"),
        &json!({ "max_tokens": 200 }),
    );
    let head = read_head(&body);
    let said = protocol::count::tokens(b"one two three four five six");
    let mut spent = 0;
    for faults in [
        "no-usage",
        "usage=negative",
        "usage=string",
        "usage=fraction",
        "usage=overflow",
        // Neither the request nor the answer is empty, so zero cannot be true.
        "usage=zero",
    ] {
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        gateway.chat(&key, &body).await.ok();
        spent += cost(head, 0, said);
        assert_eq!(gateway.usage(&key).await, spent, "{faults}");
    }
    let metrics = gateway.admin_get("/metrics").await.ok();
    assert!(
        metrics.text().contains("tollgate_usage_missing_total 6")
            && metrics.text().contains("tollgate_usage_malformed_total 4"),
        "{}",
        metrics.text()
    );
    gateway.verify().await;
}

/// B2, B4: without a usage report the charge is our count, and the hold grows to cover it. If it cannot grow, the
/// charge is capped at the hold.
#[tokio::test]
async fn a_charge_without_usage_never_exceeds_the_hold() {
    let (gateway, key) = TestGateway::funded().await;
    gateway.wallet("thin", &["--balance", "0.012"]).await;
    let thin = gateway.key("thin", &[]).await;
    let body = ask("go");
    let hold = cost(read_head(&body), 0, crate::harness::OUTPUT_RESERVE);
    for (key, grows) in [(&key, true), (&thin, false)] {
        gateway
            .sim
            .queue_faults("sim-chat", "no-usage+chunks=3000", 1)
            .unwrap();
        let answer = gateway.chat(key, &body).await.ok().json();
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        let counted = cost(
            read_head(&body),
            0,
            protocol::count::tokens(text.as_bytes()),
        );
        assert!(counted > hold);
        let charge = if grows { counted } else { hold };
        assert_eq!(gateway.usage(key).await, charge);
    }
    gateway.verify().await;
}

/// N6: a report too large to be priced counts as missing and logs an error.
#[tokio::test]
async fn a_report_that_cannot_be_priced_is_missing() {
    let (gateway, key) = TestGateway::funded().await;
    let body = ask("say exactly: not so much");
    gateway
        .sim
        .queue_faults("sim-chat", "usage=huge", 1)
        .unwrap();
    gateway.chat(&key, &body).await.ok();
    let counted = cost(read_head(&body), 0, protocol::count::tokens(b"not so much"));
    assert_eq!(gateway.usage(&key).await, counted);
    assert_eq!(gateway.frozen(&key).await, 0);
    let alarmed = |line: &str| line.contains("\"ERROR\"") && line.contains("cannot be priced");
    gateway.logged("the alarm", alarmed).await;
    gateway.verify().await;
}

/// W6: a report above the hold is booked in full and counted in a metric.
#[tokio::test]
async fn a_report_above_the_hold_is_booked_and_counted() {
    let (gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "chunks=12000", 1)
        .unwrap();
    let answer = gateway.chat(&key, &ask("hello")).await.ok().json();
    assert_eq!(gateway.usage(&key).await, expected_cost(&answer["usage"]));
    let metrics = gateway.admin_get("/metrics").await.ok();
    assert!(
        metrics
            .text()
            .contains("tollgate_settled_above_hold_total 1"),
        "{}",
        metrics.text()
    );
    gateway.verify().await;
}

/// An answer may arrive in pieces of any size.
#[tokio::test]
async fn pieces_of_an_answer_are_put_together() {
    let (gateway, key) = TestGateway::funded().await;
    for faults in ["pieces=1", "pieces=7", "delay=50ms+pieces=3"] {
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        let answer = gateway
            .chat(&key, &ask("say exactly: whole"))
            .await
            .ok()
            .json();
        assert_eq!(
            answer["choices"][0]["message"]["content"], "whole",
            "{faults}"
        );
    }
}

/// The input tokens of a body as counted at admission.
fn read_head(body: &Value) -> u64 {
    let body = bytes::Bytes::from(body.to_string());
    let head = protocol::native::read_head(protocol::Dialect::Chat, &body).unwrap();
    head.input.tokens
}

/// Pictures and speech are made and paid for twice if clients repeat a request that has reached the upstream.
#[tokio::test]
async fn a_creation_that_may_have_been_done_is_not_to_be_repeated() {
    let entries = r#"
        [[model]]
        id = "maker/paint"
        kind = "image"
        routes = [{ channel = "main", model = "sim-paint" }]
        price = { image = "0.1" }
        profile = { base = "gpt-image" }
        [[model]]
        id = "maker/voice"
        kind = "audio"
        routes = [{ channel = "main", model = "sim-voice" }]
        price = { tts_characters = "15" }
        [[channel]]
        name = "away"
        preset = "sim"
        base_url = "http://127.0.0.1:1/v1"
        credential = { file = "upstream-key" }
        [[model]]
        id = "maker/unreachable"
        kind = "image"
        routes = [{ channel = "away", model = "sim-paint" }]
        price = { image = "0.1" }
        profile = { base = "gpt-image" }
    "#;
    let (gateway, key) = GatewayBuilder::default()
        .entries(entries)
        .setting("timeouts", "upstream_first_byte_ms = 1000")
        .funded()
        .await;
    let post = |path: &str, body: &Value| Request::post(path).json(body).bearer(&key.secret);
    let paint = |model: &str| {
        let body = json!({ "model": model, "prompt": "a cat" });
        post("/v1/images/generations", &body)
    };
    let speech = json!({ "model": "maker/voice", "text": "Hello", "language": "en" });
    let calls = [
        ("sim-paint", paint("maker/paint"), true),
        ("sim-tts", post("/v1/tts", &speech), true),
        (
            "sim-chat",
            post("/v1/chat/completions", &ask("hello")),
            false,
        ),
    ];
    for (upstream_model, request, creates) in &calls {
        for (faults, status, may_be_done) in [
            ("status=400", 400, false),
            ("status=402", 502, false),
            ("status=429", 503, false),
            ("status=503", 503, false),
            ("status=500", 502, true),
            ("status=504", 502, true),
            ("hang=head", 504, true),
            ("reset=head", 502, true),
            ("error-in-200", 502, true),
            ("empty-object", 502, true),
        ] {
            gateway.sim.queue_faults(upstream_model, faults, 1).unwrap();
            let answer = gateway.send(request).await;
            assert_eq!(answer.status(), status, "{upstream_model} {faults}");
            let advice = (*creates && may_be_done).then_some("false");
            let given = answer.header("x-should-retry");
            assert_eq!(given, advice, "{upstream_model} {faults}");
        }
    }
    // No byte reached the upstream, so clients may retry.
    let unsent = gateway.send(&paint("maker/unreachable")).await;
    assert_eq!(unsent.status(), 502);
    assert_eq!(unsent.header("x-should-retry"), None);
    assert_eq!(gateway.usage(&key).await, 0);
}
