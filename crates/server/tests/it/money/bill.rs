//! Compares charges with the usage that the simulated upstream has recorded, priced by hand.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use sim::TrueUsage;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::harness::{
    Connection, Dialect, GatewayBuilder, Key, Request, Streaming, TestGateway, eventually, micro,
    within,
};

const PRICE: &str = r#"{ input = "1.25", cached_input = "0.125", cache_write = "1.5625", output = "10",
    tools = { web_search = "0.01", url_context = "0.0005", code_interpreter = "0.03", file_search = "0.0025" } }"#;

/// Behaviours of upstreams: caching, reasoning, server-side tools, and usage on every event.
const SCRIPTS: [&str; 6] = [
    "sim-chat",
    "sim-chat+cached=5",
    "sim-chat+cached=2+cache-write=3",
    "sim-reason",
    "sim-chat+searches=2+code-runs=1+file-searches=3+fetches=4",
    "sim-reason+cached=3+searches=1+usage=running",
];

/// The number of concurrent calls.
const AT_ONCE: usize = 16;

/// One model for each behaviour and each upstream dialect. `native` uses the caller's dialect.
fn entries() -> String {
    let mut text = String::new();
    for (number, script) in SCRIPTS.iter().enumerate() {
        for upstream in [None].into_iter().chain(Dialect::ALL.map(Some)) {
            let name = upstream.map_or("native", Dialect::name);
            let pinned = upstream.map_or_else(String::new, |dialect| {
                format!(", dialect = \"{}\"", dialect.name())
            });
            let _ = writeln!(
                text,
                "[[model]]
                id = \"bill/{number}-{name}\"
                kind = \"text\"
                routes = [{{ channel = \"main\", model = \"{script}\"{pinned} }}]
                price = {PRICE}
                profile = {{ context_tokens = 400000, max_output_tokens = 128000 }}"
            );
        }
    }
    text
}

/// The price of one call in micro-credits: exact integers, rounded up once at the end.
fn expected_cost(used: &TrueUsage) -> u64 {
    let tools = &used.tools;
    let exact: u128 = [
        (used.fresh_input, 1_250_000),
        (used.cache_read, 125_000),
        (used.cache_write, 1_562_500),
        (used.output, 10_000_000),
        (tools.searches, 10_000_000_000),
        (tools.fetches, 500_000_000),
        (tools.code_runs, 30_000_000_000),
        (tools.file_searches, 2_500_000_000),
    ]
    .into_iter()
    .map(|(quantity, price)| u128::from(quantity) * price)
    .sum();
    u64::try_from(exact.div_ceil(1_000_000)).unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallMode {
    Buffered,
    Streamed,
    /// The caller leaves after the first event.
    Left,
}

async fn call(address: std::net::SocketAddr, request: Request, mode: CallMode) {
    let mut connection = Connection::open(address).await;
    connection.send(&request).await;
    match mode {
        CallMode::Buffered => {
            connection.answer().await.ok();
        }
        CallMode::Streamed | CallMode::Left => {
            let head = connection.head().await.expect("an answer");
            assert_eq!(head.status, 200);
            let mut stream = Streaming::new(head, connection);
            stream.next().await.expect("an event");
            if mode == CallMode::Left {
                stream.leave();
            } else {
                stream.rest().await;
            }
        }
    }
}

/// One request for each combination of behaviour, caller's dialect and upstream dialect.
fn round(key: &Key, number: usize) -> Vec<(Request, CallMode)> {
    let mut calls = Vec::new();
    for script in 0..SCRIPTS.len() {
        for caller in Dialect::ALL {
            for upstream in ["native"]
                .into_iter()
                .chain(Dialect::ALL.map(Dialect::name))
            {
                let mode = match (calls.len() + number) % 5 {
                    0 | 1 => CallMode::Buffered,
                    2 | 3 => CallMode::Streamed,
                    _ => CallMode::Left,
                };
                let model = format!("bill/{script}-{upstream}");
                let body = caller.ask(&format!("count to {}", 3 + (calls.len() * 7 + number) % 40));
                let stream = mode != CallMode::Buffered;
                calls.push((caller.call(&key.secret, &model, body, stream), mode));
            }
        }
    }
    calls
}

/// Sends this many calls and returns their cost by the upstream's records.
async fn spend(gateway: &TestGateway, key: &Key, count: usize) -> u64 {
    let mut left = count;
    let mut expected = 0;
    let places = Arc::new(Semaphore::new(AT_ONCE));
    for number in 0.. {
        let mut running = JoinSet::new();
        for (request, mode) in round(key, number).into_iter().take(left) {
            let place = Arc::clone(&places).acquire_owned().await.unwrap();
            let address = gateway.address();
            running.spawn(async move {
                call(address, request, mode).await;
                drop(place);
            });
        }
        let sent = running.len();
        within("the calls", running.join_all()).await;
        // The gateway reads calls to their end even if their caller has left.
        let calls = within(
            "the upstream's calls",
            gateway.sim.calls_until(|calls| {
                calls.len() == sent && calls.iter().all(|call| call.took_ms.is_some())
            }),
        )
        .await;
        expected += calls
            .iter()
            .filter_map(|call| call.true_usage.as_ref())
            .map(expected_cost)
            .sum::<u64>();
        gateway.sim.forget_calls();
        left -= sent;
        if left == 0 {
            break;
        }
    }
    expected
}

/// After many mixed calls, the balance equals the cost of the usage that the upstream recorded, to the micro-credit.
/// `TOLLGATE_BILL_CALLS=10000` runs the long version.
#[tokio::test(flavor = "multi_thread")]
async fn a_balance_matches_the_upstreams_own_notes_to_the_micro() {
    let count = std::env::var("TOLLGATE_BILL_CALLS").map_or(500, |count| count.parse().unwrap());
    let (gateway, key) = GatewayBuilder::default().entries(&entries()).funded().await;
    let expected = spend(&gateway, &key, count).await;
    assert!(expected > 0);
    eventually("the last settlement", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    let balance = gateway.balance(&key).await;
    assert_eq!(micro(&balance["key"], "usage"), expected);
    assert_eq!(micro(&balance["wallet"], "balance"), 100_000_000 - expected);
    gateway.verify().await;
}

/// Each dialect reports tool calls in its own way: native and converted, whole and streamed.
#[tokio::test]
async fn tools_that_an_upstream_runs_are_on_the_bill() {
    let (gateway, key) = GatewayBuilder::default().entries(&entries()).funded().await;
    for (upstream, tools) in [
        (
            Dialect::Chat,
            json!({ "web_search": 2, "code_execution": 1, "file_search": 3 }),
        ),
        (
            Dialect::Responses,
            json!({ "web_search": 2, "code_execution": 1, "file_search": 3 }),
        ),
        (
            Dialect::Messages,
            json!({ "web_search": 2, "web_fetch": 4 }),
        ),
        (
            Dialect::Generate,
            json!({ "web_search": 2, "web_fetch": 4 }),
        ),
        (Dialect::Interactions, json!({ "web_search": 2 })),
    ] {
        for caller in [upstream, Dialect::Chat, Dialect::Messages] {
            for mode in [CallMode::Buffered, CallMode::Streamed] {
                let model = format!("bill/4-{}", upstream.name());
                let stream = mode == CallMode::Streamed;
                let request = caller.call(&key.secret, &model, caller.ask("hello"), stream);
                call(gateway.address(), request, mode).await;
                let usage = eventually("the row", async || {
                    let rows = gateway
                        .cli(&["logs", "--json", "--limit", "1", "--model", &model])
                        .await;
                    let row: Value = serde_json::from_str(rows.stdout.lines().next()?).unwrap();
                    (row["stream"] == stream).then(|| row["usage"].clone())
                })
                .await;
                assert_eq!(
                    usage["tools"], tools,
                    "{upstream:?} for {caller:?}, {mode:?}"
                );
            }
        }
    }
}

/// A request that offers built-in tools, in the form of each dialect.
fn offer(dialect: Dialect) -> Value {
    let mut body = dialect.ask("hello");
    match dialect {
        Dialect::Chat => body["web_search_options"] = json!({}),
        Dialect::Responses => body["tools"] = json!([{ "type": "web_search" }]),
        // The simulated upstream does not know tool types that contain a date.
        Dialect::Messages => {
            body["tools"] = json!([{ "type": "web_search_20260318", "name": "web_search" }]);
        }
        Dialect::Generate => body["tools"] = json!([{ "googleSearch": {} }]),
        Dialect::Interactions => body["tools"] = json!([{ "type": "google_search" }]),
    }
    body
}

fn searcher(id: &str, tools: &str) -> String {
    format!(
        "[[model]]
        id = \"{id}\"
        kind = \"text\"
        routes = [{{ channel = \"main\", model = \"sim-chat+searches=1\" }}]
        price = {{ input = \"1\", output = \"1\"{tools} }}
        profile = {{ context_tokens = 1000, max_output_tokens = 1000 }}\n"
    )
}

#[tokio::test]
async fn a_tool_without_a_price_is_refused_where_the_operator_says_so() {
    let models = searcher("bill/unpriced", "")
        + &searcher("bill/priced", ", tools = { google_search = \"0.01\" }");
    let (gateway, key) = GatewayBuilder::default()
        .setting("ledger", "refuse_unpriced_tools = true")
        .entries(&models)
        .funded()
        .await;
    for dialect in Dialect::ALL {
        let refused = dialect.call(&key.secret, "bill/unpriced", offer(dialect), false);
        let answer = gateway.send(&refused).await;
        assert_eq!(
            dialect.failure(&answer),
            (400, "unsupported_parameter".to_owned()),
            "{dialect:?}"
        );
        if dialect != Dialect::Messages {
            let served = dialect.call(&key.secret, "bill/priced", offer(dialect), false);
            gateway.send(&served).await.ok();
        }
        // A request without tools is served.
        let plain = dialect.call(&key.secret, "bill/unpriced", dialect.ask("hello"), false);
        gateway.send(&plain).await.ok();
    }
    // The price of an unknown tool is not known, so the request is refused.
    let mut unknown = Dialect::Chat.ask("hello");
    unknown["tools"] =
        json!([{ "type": "builtin_function", "function": { "name": "$web_search" } }]);
    let unknown = Dialect::Chat.call(&key.secret, "bill/priced", unknown, false);
    assert_eq!(
        Dialect::Chat.failure(&gateway.send(&unknown).await),
        (400, "unsupported_parameter".to_owned())
    );
    assert_eq!(gateway.upstream_calls(), 9);
}

#[tokio::test]
async fn a_tool_without_a_price_is_served_and_counted_otherwise() {
    let (gateway, key) = GatewayBuilder::default()
        .entries(&searcher("bill/unpriced", ""))
        .funded()
        .await;
    let request = Dialect::Chat.call(&key.secret, "bill/unpriced", offer(Dialect::Chat), false);
    gateway.send(&request).await.ok();
    let metrics = gateway.admin_get("/metrics").await.ok();
    let line = r#"tollgate_unpriced_tool_calls_total{model="bill/unpriced",tool="web_search"} 1"#;
    assert!(metrics.text().contains(line), "{}", metrics.text());
    gateway.verify().await;
}

#[tokio::test]
async fn one_call_of_each_offered_tool_is_held_for() {
    let models = searcher("bill/dear", ", tools = { web_search = \"7\" }");
    let gateway = GatewayBuilder::default().entries(&models).start().await;
    gateway.wallet("w", &["--balance", "5"]).await;
    let key = gateway.key("w", &[]).await;
    let call = |body| Dialect::Responses.call(&key.secret, "bill/dear", body, false);
    let refused = gateway.send(&call(offer(Dialect::Responses))).await;
    assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
    // The request does not offer the tool, so the hold does not cover it. The upstream uses the tool anyway, so it is
    // charged (W6).
    gateway
        .send(&call(Dialect::Responses.ask("hello")))
        .await
        .ok();
    let balance = gateway.balance(&key).await;
    assert!(
        micro(&balance["wallet"], "credit_used") > 2_000_000,
        "{balance}"
    );
    gateway.verify().await;
}
