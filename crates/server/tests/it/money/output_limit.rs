//! Output beyond the declared limit: the hold grows with it, or the stream is cut.

use serde_json::{Value, json};

use crate::harness::{
    CANNED_MODEL, CannedUpstream, Connection, Dialect, GatewayBuilder, Key, Streaming, TestGateway,
    ask, cost, eventually, micro, model_via, pairs, with,
};

/// A chat stream of this many words, without a usage report.
fn words(count: usize) -> String {
    let mut stream = String::new();
    for _ in 0..count {
        stream.push_str(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" wonderful\"}}]}\n\n",
        );
    }
    stream + "data: [DONE]\n\n"
}

async fn settled_wallet(gateway: &TestGateway, key: &Key) -> Value {
    eventually("the settlement", async || {
        let wallet = gateway.balance(key).await["wallet"].clone();
        (micro(&wallet, "frozen") == 0).then_some(wallet)
    })
    .await
}

fn declared(limit: u64) -> Value {
    with(
        ask("go"),
        &json!({ "model": CANNED_MODEL, "max_tokens": limit }),
    )
}

/// The hold grows with the observed output, without an upper limit. If a step is refused, the stream is cut.
#[tokio::test]
async fn an_upstream_that_ignores_the_limit_is_cut_when_the_wallet_is_empty() {
    let canned = CannedUpstream::stream(&words(60_000)).await;
    let gateway = GatewayBuilder::default()
        .entries(&canned.entries())
        .start()
        .await;
    gateway.wallet("thin", &["--balance", "0.1"]).await;
    let key = gateway.key("thin", &[]).await;
    let (events, _) = gateway.stream(&key, &declared(5)).await.rest().await;
    let last = events.last().unwrap().json();
    assert_eq!(last["error"]["code"], "insufficient_quota", "{last}");
    let wallet = settled_wallet(&gateway, &key).await;
    assert_eq!(micro(&wallet, "credit_used"), 0, "{wallet}");
    // The wallet pays for the observed output up to the hold. Only the refused step is not charged.
    assert!(micro(&wallet, "balance") < 45_000, "{wallet}");
    gateway.verify().await;
}

#[tokio::test]
async fn what_comes_beyond_the_limit_is_paid_for() {
    let canned = CannedUpstream::stream(&words(20_000)).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let (events, _) = gateway.stream(&key, &declared(5)).await.rest().await;
    assert!(events.last().unwrap().is_done());
    let words = protocol::count::tokens(" wonderful".repeat(20_000).as_bytes());
    let usage = gateway.usage(&key).await;
    assert!(usage >= cost(0, 0, words), "{usage} for {words}");
    gateway.verify().await;
}

/// Output beyond the limit is charged even if a whole answer has no usage report, and even if a stream arrives
/// completely in one read.
#[tokio::test]
async fn short_answers_beyond_the_limit_are_paid_for_too() {
    let text = " wonderful".repeat(1_000);
    let whole = json!({ "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": text } }] });
    let least = cost(0, 0, protocol::count::tokens(text.as_bytes()));
    let canned = CannedUpstream::json(&whole.to_string()).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    gateway.chat(&key, &declared(5)).await.ok();
    assert!(gateway.usage(&key).await >= least);
    gateway.verify().await;

    let one = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let canned = CannedUpstream::stream(&format!("data: {one}\n\ndata: [DONE]\n\n")).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let (events, _) = gateway.stream(&key, &declared(5)).await.rest().await;
    assert!(events.last().unwrap().is_done());
    assert!(
        gateway.usage(&key).await >= least,
        "seen with its last event"
    );
    gateway.verify().await;
}

/// S1: output that arrives after the client has left is counted and charged.
#[tokio::test]
async fn who_hangs_up_pays_for_what_was_observed() {
    let canned =
        CannedUpstream::unending_stream(words(30_000).trim_end_matches("data: [DONE]\n\n")).await;
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "client_gone_drain_ms = 60000")
        .entries(&canned.entries())
        .funded()
        .await;
    let mut stream = gateway.stream(&key, &declared(5)).await;
    stream.next().await.expect("content");
    stream.leave();
    settled_wallet(&gateway, &key).await;
    // The gateway reads 256 KiB after the client has left, which is more than three thousand words of seventy bytes.
    let usage = gateway.usage(&key).await;
    assert!(usage >= cost(0, 0, 3_000), "{usage}");
    gateway.verify().await;
}

/// A request with an output limit in the form of a dialect.
fn limited(dialect: Dialect, limit: i64) -> Value {
    let extra = match dialect {
        Dialect::Chat | Dialect::Messages => json!({ "max_tokens": limit }),
        Dialect::Responses => json!({ "max_output_tokens": limit }),
        Dialect::Generate => json!({ "generationConfig": { "maxOutputTokens": limit } }),
        Dialect::Interactions => json!({ "generation_config": { "max_output_tokens": limit } }),
    };
    with(dialect.ask("go"), &extra)
}

/// A limit of zero or less does not reduce the hold. Messages refuses a negative limit.
#[tokio::test]
async fn a_limit_of_zero_bounds_nothing() {
    let gateway = TestGateway::start().await;
    gateway.wallet("thin", &["--balance", "0.001"]).await;
    let key = gateway.key("thin", &[]).await;
    for dialect in Dialect::ALL {
        for limit in [0, -1] {
            let body = limited(dialect, limit);
            let call = dialect.call(&key.secret, "maker/chat", body, false);
            let answer = gateway.send(&call).await;
            let (status, code) = dialect.failure(&answer);
            let expected = match (dialect, limit) {
                (Dialect::Messages, -1) => (400, "invalid_request"),
                _ => (402, "insufficient_quota"),
            };
            assert_eq!((status, &*code), expected, "{dialect:?} {limit}");
        }
    }
    assert_eq!(gateway.upstream_calls(), 0);
}

/// For every pair of dialects: when the wallet cannot pay for more output, the stream ends with an error of the
/// caller's dialect.
#[tokio::test]
async fn every_dialect_is_cut_in_its_own_words() {
    let (gateway, _) = GatewayBuilder::default()
        .setting("ledger", "output_reserve_tokens = 100")
        .paired("sim-chat+chunks=2000+chunk-delay=1ms+ignore-limit")
        .await;
    for (caller, upstream) in pairs() {
        let name = format!("{}-{}", caller.name(), upstream.name());
        gateway.wallet(&name, &["--balance", "0.004"]).await;
        let key = gateway.key(&name, &[]).await;
        let call = caller.call(&key.secret, &model_via(upstream), limited(caller, 20), true);
        let mut connection = Connection::open(gateway.address()).await;
        connection.send(&call).await;
        let head = connection.head().await.expect("an answer");
        let (events, _) = Streaming::new(head, connection).rest().await;
        let last = events.last().unwrap().json();
        let text = last.to_string();
        assert!(text.contains("insufficient_quota"), "{name}: {text}");
        let wallet = settled_wallet(&gateway, &key).await;
        assert_eq!(micro(&wallet, "credit_used"), 0, "{name}: {wallet}");
    }
    gateway.verify().await;
}

/// Upstreams ignore a limit whose member name they do not know.
#[tokio::test]
async fn a_converted_request_has_the_limit_in_the_channels_words() {
    let answer = json!({ "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": "done" } }] });
    for (preset, profile, name) in [
        ("openai", "", "max_completion_tokens"),
        ("openai-compatible", "", "max_tokens"),
        (
            "openai-compatible",
            "output_limit = \"max_completion_tokens\", ",
            "max_completion_tokens",
        ),
        ("openai", "output_limit = \"max_tokens\", ", "max_tokens"),
    ] {
        let canned = CannedUpstream::json(&answer.to_string()).await;
        let entries = canned.entries();
        let entries = entries
            .replace(
                "preset = \"sim\"",
                &format!(
                    "preset = \"{preset}\"
                credential = {{ file = \"upstream-key\" }}
                protocols = [\"chat\"]"
                ),
            )
            .replace("profile = { ", &format!("profile = {{ {profile}"));
        let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
        let call = Dialect::Messages.call(
            &key.secret,
            CANNED_MODEL,
            limited(Dialect::Messages, 7),
            false,
        );
        gateway.send(&call).await.ok();
        let sent: Value = serde_json::from_slice(&canned.bodies()[0]).unwrap();
        assert_eq!(sent[name], 7, "{preset} {profile}: {sent}");
        let names = ["max_tokens", "max_completion_tokens"];
        assert_eq!(names.iter().filter(|it| sent.get(it).is_some()).count(), 1);
    }
}
