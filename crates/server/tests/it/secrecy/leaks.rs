//! K3, K5, K6: nothing that identifies an upstream reaches a caller, in success or failure.

use serde_json::{Value, json};

use crate::harness::{
    Answer, CANNED_MODEL, CannedUpstream, GatewayBuilder, Key, MODEL, TestGateway, UPSTREAM_KEY,
    ask, with,
};

/// The response headers that the answers in these tests may have.
pub(crate) const ALLOWED_HEADERS: [&str; 14] = [
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "date",
    "x-request-id",
    "request-id",
    "retry-after",
    "x-should-retry",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-dropped-params",
];

/// Texts that identify the upstream.
fn upstream_identifiers(gateway: &TestGateway) -> Vec<String> {
    let mut upstream_identifiers: Vec<String> = [
        UPSTREAM_KEY,
        "sim-",
        "sim_",
        "req_sim",
        "-SIM",
        "chatcmpl-",
        "upstream.example",
        "proj_",
        "org-4711",
        "sim4711",
        "127.0.0.1",
        "localhost",
        "/v1/",
        "http:",
        "https:",
        "simulat",
    ]
    .map(str::to_owned)
    .to_vec();
    // The colon before the port is included, because the digits alone may occur in a time or an id by chance.
    upstream_identifiers.push(format!(":{}", gateway.sim.address().port()));
    upstream_identifiers
}

#[track_caller]
fn assert_clean(gateway: &TestGateway, what: &str, answer: &Answer) {
    for (name, value) in &answer.head.headers {
        assert!(
            ALLOWED_HEADERS.contains(&name.as_str()),
            "{what}: header {name}: {value}"
        );
    }
    let request_id = answer.header("x-request-id").unwrap();
    assert_eq!(
        request_id.len(),
        "req_".len() + 22,
        "{what}: not our request id"
    );
    // The model's fingerprint is content, which is passed on unchanged.
    let text = String::from_utf8_lossy(&answer.body);
    let fingerprint = text.find("fp_sim").map(|at| text[at..at + 16].to_owned());
    let text = fingerprint.map_or(text.clone().into_owned(), |it| text.replace(&it, ""));
    for sign in upstream_identifiers(gateway) {
        assert!(!text.contains(&sign), "{what}: {sign} in {text}");
    }
}

async fn gateway() -> (TestGateway, Key) {
    GatewayBuilder::default()
        .setting("timeouts", "upstream_first_byte_ms = 1000")
        .setting("timeouts", "upstream_idle_ms = 1000")
        // The limit is high, so that a request for a thousand answers is refused by the upstream and not for lack of
        // credits.
        .setting("ledger", "debt_limit = \"2000\"")
        .entries(
            r#"
            [[model]]
            id = "maker/missing"
            kind = "text"
            routes = [{ channel = "main", model = "missing-name-9" }]
            price = { input = "1", output = "2" }
            profile = { max_output_tokens = 1000 }
            [[channel]]
            name = "bad-key"
            preset = "sim"
            base_url = "http://SIM/v1"
            credential = { file = "bad-key" }
            [[model]]
            id = "maker/bad-key"
            kind = "text"
            routes = [{ channel = "bad-key", model = "sim-chat" }]
            price = { input = "1", output = "2" }
            profile = { max_output_tokens = 1000 }
            [[channel]]
            name = "poor-key"
            preset = "sim"
            base_url = "http://SIM/v1"
            credential = { file = "poor-key" }
            [[model]]
            id = "maker/poor-key"
            kind = "text"
            routes = [{ channel = "poor-key", model = "sim-chat" }]
            price = { input = "1", output = "2" }
            profile = { max_output_tokens = 1000 }
            "#,
        )
        .file("bad-key", "sim-bad-key")
        .file("poor-key", "sim-poor-key")
        .funded()
        .await
}

#[tokio::test]
async fn no_answer_gives_its_upstream_away() {
    let (gateway, key) = gateway().await;
    for target in [
        "/v1/models",
        "/v1beta/models",
        "/v1/balance",
        "/v1/models/maker/chat",
    ] {
        let answer = gateway.get(&key, target).await.ok();
        assert_clean(&gateway, target, &answer);
    }
    for model in ["maker/missing", "maker/bad-key", "maker/poor-key"] {
        let body = with(ask("hello"), &json!({ "model": model }));
        let calls = gateway.upstream_calls();
        let answer = gateway.chat(&key, &body).await;
        assert_eq!(gateway.upstream_calls(), calls + 1, "{model}");
        assert_eq!(
            answer.failure(),
            (502, "upstream_error".to_owned()),
            "{model}"
        );
        assert_clean(&gateway, model, &answer);
    }
    let faults = [
        "",
        "delay=1ms",
        "status=400",
        "status=402",
        "status=403",
        "status=404",
        "status=408",
        "status=409",
        "status=413",
        "status=422",
        "status=429",
        "status=429:retry-after=2",
        "status=500",
        "status=502",
        "status=503",
        "status=529",
        "status=301",
        "hang=head",
        "hang=content",
        "reset=content",
        "cut=content",
        "cut=head",
        "truncate=content",
        "garbage",
        "wrong-type",
        "wrong-type=swapped",
        "empty-object",
        "error-in-200",
        "error-event=0",
        "error-event=2",
        "garbage-event=2",
        "no-done",
        "no-finish",
        "no-usage",
        "invalid-utf8",
        "refuse",
        "content-filter",
        "strict",
        // A 401 comes last, because it disables the channel.
        "status=401",
    ];
    for faults in faults {
        for stream in [false, true] {
            let calls = gateway.upstream_calls();
            gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
            let body = with(
                ask("say exactly: plain words only"),
                &json!({ "stream": stream }),
            );
            let answer = gateway.chat(&key, &body).await;
            let what = format!("{faults} {stream}");
            assert_clean(&gateway, &what, &answer);
            let is_disabled = faults == "status=401" && stream;
            assert_eq!(gateway.upstream_calls() > calls, !is_disabled, "{what}");
        }
    }
    gateway.verify().await;
}

/// K6: the upstream's name for a model is replaced with the public id.
#[tokio::test]
async fn refusals_speak_of_the_public_model() {
    let (gateway, key) = gateway().await;
    for more in [
        json!({ "temperature": 99 }),
        json!({ "messages": [{ "role": "wizard", "content": "x" }] }),
        json!({ "messages": [{ "role": "tool", "content": "x" }] }),
        json!({ "max_tokens": 0 }),
        json!({ "n": 1000 }),
        json!({ "top_logprobs": 50 }),
        json!({ "tools": [{ "type": "nothing" }] }),
        json!({ "response_format": { "type": "json_schema" } }),
    ] {
        let body = with(ask("hello"), &more);
        let answer = gateway.chat(&key, &body).await;
        assert_eq!(
            answer.failure(),
            (400, "upstream_rejected".to_owned()),
            "{more}"
        );
        assert_clean(&gateway, &more.to_string(), &answer);
    }
    gateway
        .sim
        .queue_faults("sim-chat", "status=400", 1)
        .unwrap();
    let answer = gateway.chat(&key, &ask("hello")).await;
    let message = answer.openai_error()["message"].clone();
    assert_eq!(
        message,
        Value::from(
            "Your request [id] of [upstream] organization [id] could not be processed at \
             [address] with key [key], see [url]. (model `maker/chat`)"
        )
    );
}

/// K3, K4: secrets of callers and upstreams never appear in the log.
#[tokio::test]
async fn the_log_keeps_every_secret() {
    let (gateway, key) = gateway().await;
    // A 401 disables its channel, so it comes last.
    for (model, faults) in [
        (MODEL, "reset=content"),
        (MODEL, "garbage"),
        (MODEL, "status=401"),
        ("maker/bad-key", ""),
    ] {
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        let more = json!({ "model": model, "stream": true });
        let body = with(ask("a very private question"), &more);
        gateway.chat(&key, &body).await;
    }
    assert_eq!(gateway.upstream_calls(), 4);
    gateway
        .get(&key, &format!("/v1beta/models?key={}", key.secret))
        .await
        .ok();
    for channel in ["\"main\"", "\"bad-key\""] {
        let is_refusal = |line: &str| line.contains("credential") && line.contains(channel);
        gateway.logged("a refused credential", is_refusal).await;
    }
    let log = gateway.log().join("\n");
    for secret in [UPSTREAM_KEY, &key.secret, "private question", "sim-bad-key"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

/// K3, K4: the log does not contain secrets that an upstream repeats in an error with status 200.
#[tokio::test]
async fn the_log_does_not_repeat_errors_in_a_200() {
    let message = "Incorrect key vnd_4711abc; prompt 'a very private question' was blocked";
    let error = json!({ "error": { "message": message, "type": "server_error" } }).to_string();
    for stream in [false, true] {
        let canned = if stream {
            CannedUpstream::stream(&format!("data: {error}\n\n")).await
        } else {
            CannedUpstream::json(&error).await
        };
        let builder = GatewayBuilder::default().entries(&canned.entries());
        let (gateway, key) = builder.funded().await;
        let more = json!({ "model": CANNED_MODEL, "stream": stream });
        let answer = gateway.chat(&key, &with(ask("hello"), &more)).await;
        assert_eq!(answer.status(), 502, "{}", answer.text());
        let is_it = |line: &str| line.contains("answer cannot be used");
        let line = gateway.logged("an unusable answer", is_it).await;
        assert!(line.contains("\"canned\""), "{line}");
        let log = gateway.log().join("\n");
        for secret in ["vnd_4711abc", "private question"] {
            assert!(!log.contains(secret), "{secret} in {log}");
        }
    }
}
