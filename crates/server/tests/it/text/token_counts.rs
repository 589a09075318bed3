//! Token counts: the upstream's count if it provides one, otherwise ours. Both are free.

use serde_json::{Value, json};

use crate::harness::{Answer, Dialect, GatewayBuilder, Key, Request, TestGateway, eventually};

/// Two more channels to the simulated upstream: one without token counting, and one with the chat dialect alone.
const ENTRIES: &str = r#"
[[channel]]
name = "uncounted"
preset = "sim"
base_url = "http://SIM/v1"
credential = { file = "upstream-key" }
counts_tokens = false
[[channel]]
name = "chat-alone"
preset = "openai-compatible"
base_url = "http://SIM/v1"
credential = { file = "upstream-key" }
[[model]]
id = "maker/uncounted"
kind = "text"
routes = [{ channel = "uncounted", model = "sim-chat" }]
price = { input = "1", output = "2" }
profile = { context_tokens = 400000, max_output_tokens = 1000 }
[[model]]
id = "maker/converted"
kind = "text"
routes = [{ channel = "chat-alone", model = "sim-chat" }]
price = { input = "1", output = "2" }
profile = { context_tokens = 400000, max_output_tokens = 1000 }
"#;

const DIALECTS: [Dialect; 3] = [Dialect::Messages, Dialect::Responses, Dialect::Generate];

fn builder() -> GatewayBuilder {
    GatewayBuilder::default().entries(ENTRIES)
}

fn text_of(words: usize) -> String {
    vec!["word"; words].join(" ")
}

fn body_of(dialect: Dialect, model: &str, text: &str) -> Value {
    match dialect {
        Dialect::Responses => json!({ "model": model, "input": text }),
        Dialect::Generate => {
            json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] })
        }
        _ => json!({ "model": model, "messages": [{ "role": "user", "content": text }] }),
    }
}

fn target_of(dialect: Dialect, model: &str) -> String {
    match dialect {
        Dialect::Responses => "/v1/responses/input_tokens".to_owned(),
        Dialect::Generate => format!("/v1beta/models/{model}:countTokens"),
        _ => "/v1/messages/count_tokens".to_owned(),
    }
}

async fn count(
    gateway: &TestGateway,
    key: &Key,
    dialect: Dialect,
    model: &str,
    body: &Value,
) -> Answer {
    let request = Request::post(&target_of(dialect, model)).json(body);
    gateway.send(&request.bearer(&key.secret)).await
}

fn tokens_of(dialect: Dialect, answer: &Answer) -> u64 {
    let shown = answer.json();
    let tokens = match dialect {
        Dialect::Generate => &shown["totalTokens"],
        Dialect::Responses => {
            assert_eq!(shown["object"], "response.input_tokens");
            &shown["input_tokens"]
        }
        _ => &shown["input_tokens"],
    };
    tokens.as_u64().unwrap_or_else(|| panic!("{shown}"))
}

#[tokio::test]
async fn an_upstream_that_counts_is_asked_and_names_nothing_of_its_own() {
    let (gateway, key) = builder().funded().await;
    for dialect in DIALECTS {
        let before = gateway.upstream_calls();
        let body = body_of(dialect, "maker/chat", &text_of(7));
        let answer = count(&gateway, &key, dialect, "maker/chat", &body)
            .await
            .ok();
        assert_eq!(gateway.upstream_calls(), before + 1, "{dialect:?}");
        // The simulator counts each word as one token, and the role as one more if the request contains a role.
        let tokens = tokens_of(dialect, &answer);
        assert!((7..=8).contains(&tokens), "{dialect:?} {tokens}");
        let call = gateway.sim.calls().pop().unwrap();
        let sent = String::from_utf8_lossy(&call.body);
        assert!(!sent.contains("maker/"), "{dialect:?} {sent}");
        assert!(!answer.text().contains("sim-"), "{dialect:?}");
    }
    assert_eq!(
        (gateway.usage(&key).await, gateway.frozen(&key).await),
        (0, 0)
    );
    gateway.verify().await;
}

#[tokio::test]
async fn an_upstream_that_does_not_count_or_fails_leaves_it_to_us() {
    let (gateway, key) = builder().funded().await;
    for dialect in DIALECTS {
        let mut own = Vec::new();
        for (model, faults, calls) in [
            ("maker/uncounted", None, 0),
            ("maker/converted", None, 0),
            ("maker/chat", Some("status=404"), 1),
            ("maker/chat", Some("status=401"), 1),
            ("maker/chat", Some("status=500"), 1),
            ("maker/chat", Some("empty-object"), 1),
            ("maker/chat", Some("reset=head"), 1),
        ] {
            if let Some(faults) = faults {
                gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
            }
            let before = gateway.upstream_calls();
            let body = body_of(dialect, model, &text_of(100));
            let answer = count(&gateway, &key, dialect, model, &body).await.ok();
            let called = gateway.upstream_calls() - before;
            assert_eq!(called, calls, "{dialect:?} {model} {faults:?}");
            own.push(tokens_of(dialect, &answer));
        }
        assert!(own.windows(2).all(|pair| pair[0] == pair[1]), "{own:?}");
        assert!((100..=130).contains(&own[0]), "{dialect:?} {own:?}");
    }
    // A refused count does not mean that the credential is refused: the channel still answers.
    let body = json!({ "model": "maker/chat", "messages": [{ "role": "user", "content": "hi" }] });
    gateway.chat(&key, &body).await.ok();
    gateway.verify().await;
}

#[tokio::test]
async fn a_count_needs_a_key_and_a_request_that_would_be_answered_but_no_money() {
    let gateway = builder().start().await;
    gateway.wallet("w", &[]).await;
    let key = gateway.key("w", &["--limit", "0"]).await;
    for dialect in DIALECTS {
        let body = body_of(dialect, "maker/chat", "hi");
        count(&gateway, &key, dialect, "maker/chat", &body)
            .await
            .ok();
        // A large body needs memory, which is reserved for callers who can pay.
        let large = body_of(dialect, "maker/uncounted", &text_of(40_000));
        let answer = count(&gateway, &key, dialect, "maker/uncounted", &large).await;
        let expected = (402, "insufficient_quota".to_owned());
        assert_eq!(dialect.failure(&answer), expected);
        let stranger = Key {
            id: String::new(),
            secret: "sk-tg-none".to_owned(),
        };
        let refused = count(&gateway, &stranger, dialect, "maker/chat", &body).await;
        let expected = (401, "invalid_api_key".to_owned());
        assert_eq!(dialect.failure(&refused), expected);
        for (model, body, expected) in [
            (
                "maker/none",
                body_of(dialect, "maker/none", "hi"),
                (404, "model_not_found"),
            ),
            (
                "maker/vectors",
                body_of(dialect, "maker/vectors", "hi"),
                (400, "model_not_supported"),
            ),
            (
                "maker/chat",
                json!({ "model": "maker/chat" }),
                (400, "invalid_request"),
            ),
        ] {
            let refused = count(&gateway, &key, dialect, model, &body).await;
            let expected = (expected.0, expected.1.to_owned());
            assert_eq!(dialect.failure(&refused), expected, "{model}");
        }
    }
    gateway.cli_json(&["wallet", "disable", "w"]).await;
    let body = body_of(Dialect::Messages, "maker/chat", "hi");
    count(&gateway, &key, Dialect::Messages, "maker/chat", &body)
        .await
        .ok();
    gateway.verify().await;
}

/// `max_tokens` is required in a message, but not in a token count. Members that matter only for an answer are not sent
/// to a counting endpoint, which would refuse them.
#[tokio::test]
async fn a_whole_request_can_be_counted_as_it_is() {
    let (gateway, key) = builder().funded().await;
    let whole = json!({
        "model": "maker/chat", "max_tokens": 5, "stream": true, "temperature": 1,
        "messages": [{ "role": "user", "content": "hi" }],
    });
    let wrapped = json!({ "generateContentRequest": {
        "model": "models/maker/chat", "generationConfig": { "maxOutputTokens": 5 },
        "contents": [{ "parts": [{ "text": "hi" }] }], "systemInstruction": { "parts": [{ "text": "be brief" }] },
    } });
    let response = json!({
        "model": "maker/chat", "input": "hi", "max_output_tokens": 16, "stream": true, "store": false,
    });
    for (dialect, body) in [
        (Dialect::Messages, whole),
        (Dialect::Generate, wrapped),
        (Dialect::Responses, response),
    ] {
        let answer = count(&gateway, &key, dialect, "maker/chat", &body)
            .await
            .ok();
        // Our own count would be larger, so this is the upstream's: it has not refused the request.
        assert!(tokens_of(dialect, &answer) <= 4, "{dialect:?}");
        assert_eq!(
            gateway.sim.calls().pop().unwrap().status,
            Some(200),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn counts_are_limited_by_the_minute_and_journaled_without_a_charge() {
    let (gateway, _) = builder().funded().await;
    let key = gateway.key("w", &["--rpm", "2"]).await;
    let body = body_of(Dialect::Messages, "maker/uncounted", "hi");
    let ask = async || count(&gateway, &key, Dialect::Messages, "maker/uncounted", &body).await;
    ask().await.ok();
    ask().await.ok();
    let refused = ask().await;
    let expected = (429, "rate_limit_exceeded".to_owned());
    assert_eq!(Dialect::Messages.failure(&refused), expected);
    assert!(refused.header("retry-after").is_some());
    let rows = eventually("the journal", async || {
        let output = gateway.cli(&["logs", "--key", &key.id, "--json"]).await;
        let rows = output
            .stdout
            .lines()
            .map(|row| serde_json::from_str(row).unwrap());
        let rows: Vec<Value> = rows.collect();
        (rows.len() == 3).then_some(rows)
    })
    .await;
    for row in rows {
        assert_eq!(row["endpoint"], "/v1/messages/count_tokens", "{row}");
    }
    assert_eq!(
        (gateway.usage(&key).await, gateway.frozen(&key).await),
        (0, 0)
    );
    gateway.verify().await;
}

#[tokio::test]
async fn counts_go_with_the_paths_that_only_sdks_know() {
    let (gateway, key) = builder()
        .setting("server", "sdk_aliases = false")
        .funded()
        .await;
    for dialect in DIALECTS {
        let body = body_of(dialect, "maker/chat", "hi");
        let answer = count(&gateway, &key, dialect, "maker/chat", &body).await;
        assert_eq!(dialect.failure(&answer), (404, "not_found".to_owned()));
    }
}

/// A request that the answering endpoint refuses for lack of a price is refused by the counting endpoint too.
#[tokio::test]
async fn what_has_no_price_is_not_counted() {
    let entries = r#"
        [[model]]
        id = "maker/short-cache"
        kind = "text"
        routes = [{ channel = "main", model = "sim-chat", dialect = "messages" }]
        price = { input = "1", output = "2", cache_write = "1.25" }
        profile = { context_tokens = 400000, max_output_tokens = 1000 }
    "#;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&format!("{ENTRIES}{entries}"))
        .setting("ledger", "refuse_unpriced_tools = true")
        .funded()
        .await;
    let search = |dialect| match dialect {
        Dialect::Messages => json!([{ "type": "web_search_20250305", "name": "web_search" }]),
        Dialect::Responses => json!([{ "type": "web_search" }]),
        _ => json!([{ "googleSearch": {} }]),
    };
    for dialect in DIALECTS {
        for (model, is_native) in [("maker/chat", true), ("maker/converted", false)] {
            let mut body = body_of(dialect, model, "hello");
            body["tools"] = search(dialect);
            let counted = count(&gateway, &key, dialect, model, &body).await;
            if dialect == Dialect::Messages {
                body["max_tokens"] = json!(10);
            }
            let called = gateway
                .send(&dialect.call(&key.secret, model, body, false))
                .await;
            // A converted request loses the tool instead.
            let status = if is_native { 400 } else { 200 };
            assert_eq!(called.status(), status, "{dialect:?} {model}");
            assert_eq!(counted.status(), status, "{dialect:?} {model}");
            if is_native {
                assert_eq!(
                    dialect.failure(&counted),
                    dialect.failure(&called),
                    "{dialect:?}"
                );
            }
        }
    }
    let mut body = body_of(Dialect::Messages, "maker/short-cache", "hello");
    for (ttl, status) in [("5m", 200), ("1h", 400)] {
        body["cache_control"] = json!({ "type": "ephemeral", "ttl": ttl });
        let answer = count(
            &gateway,
            &key,
            Dialect::Messages,
            "maker/short-cache",
            &body,
        )
        .await;
        assert_eq!(answer.status(), status, "{}", answer.text());
    }
}
