//! The debt limit: parallel calls with the most expensive answers, on one node and on three.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{
    CANNED_MODEL, CannedUpstream, Connection, Database, GatewayBuilder, Key, Request, TestGateway,
    ask, eventually, micro, with,
};

/// The longest answer that the canned model can give. It costs 1.28 credits.
const DEAREST: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":128000,"total_tokens":128010}}"#;
const COST: u64 = 1_280_013;
/// The default of `ledger.debt_limit`, in micro-credits.
const DEBT_LIMIT: u64 = 10_000_000;

fn builder(canned: &CannedUpstream) -> GatewayBuilder {
    GatewayBuilder::default()
        .setting("ledger", "output_reserve_tokens = 4096")
        .entries(&canned.entries())
}

async fn call(node: SocketAddr, key: &Key, body: &Value) -> (u16, String) {
    let mut connection = Connection::open(node).await;
    let request = Request::chat(body).bearer(&key.secret);
    connection.send(&request).await;
    let answer = connection.answer().await;
    (answer.status(), answer.text().to_owned())
}

/// Sends two hundred buffered calls at once. The upstream holds back its answers until all calls beyond the limit are
/// refused, so that all admitted calls are open at the same time.
async fn assert_within_debt_limit(
    gateway: &TestGateway,
    canned: &CannedUpstream,
    nodes: &[SocketAddr],
) {
    gateway.wallet("poor", &["--balance", "0.5"]).await;
    let key = gateway.key("poor", &[]).await;
    let body = with(
        ask("hello"),
        &json!({ "model": CANNED_MODEL, "max_tokens": 5 }),
    );
    let mut asked = JoinSet::new();
    for number in 0..200 {
        let (node, key, body) = (nodes[number % nodes.len()], key.clone(), body.clone());
        asked.spawn(async move { call(node, &key, &body).await });
    }
    // A balance of 0.5 and a debt limit of 10 allow eight calls of 1.28 credits.
    for _ in 0..192 {
        let (status, text) = asked.join_next().await.unwrap().unwrap();
        assert_eq!(status, 402, "{text}");
        assert!(text.contains("\"insufficient_quota\""), "{text}");
        assert!(text.contains("could cost at most"), "{text}");
    }
    canned.wait_for_requests(8).await;
    // `/v1/balance` returns durable state, so commands see the holds too.
    gateway.balance(&key).await;
    let exposed = gateway.cli_json(&["wallet", "show", "poor"]).await;
    assert!(micro(&exposed, "exposed") > 9 * 1_000_000, "{exposed}");
    canned.release_answers();
    while let Some(answer) = asked.join_next().await {
        assert_eq!(answer.unwrap().0, 200);
    }
    eventually("the calls to be settled", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    let wallet = gateway.balance(&key).await["wallet"].clone();
    let debt = micro(&wallet, "credit_used");
    assert_eq!(debt, 8 * COST - 500_000);
    assert!(debt <= DEBT_LIMIT);
    let closed = gateway.cli_json(&["wallet", "show", "poor"]).await;
    assert_eq!(micro(&closed, "exposed"), 0);
    gateway.verify().await;
}

#[tokio::test]
async fn two_hundred_buffered_calls_stay_within_the_debt_limit() {
    let canned = CannedUpstream::paused(DEAREST).await;
    let gateway = builder(&canned).start().await;
    assert_within_debt_limit(&gateway, &canned, &[gateway.address()]).await;
}

#[tokio::test]
async fn three_nodes_stay_within_the_debt_limit() {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return;
    };
    let canned = CannedUpstream::paused(DEAREST).await;
    let mut gateway = builder(&canned).database(database).start().await;
    let mut nodes = vec![gateway.address()];
    for _ in 0..2 {
        nodes.push(gateway.another_node().await);
    }
    assert_within_debt_limit(&gateway, &canned, &nodes).await;
}

/// The hold for eight seconds is 0.4 credits. A plausible report in dollars may cost half a credit more, which is the
/// debt limit.
const VIDEO: &str = r#"
[[model]]
id = "maker/film"
kind = "video"
routes = [{ channel = "main", model = "sim-video" }]
price = { video_second = "0.05", usd = "2" }
profile = { base = "video-a" }
"#;

#[tokio::test]
async fn many_tasks_at_once_stay_within_the_debt_limit() {
    let gateway = GatewayBuilder::default()
        .entries(VIDEO)
        .setting("ledger", "debt_limit = \"0.5\"")
        .start()
        .await;
    // A wallet whose credits cover the hold of one task always gets this task. Two credits cover five holds, but only
    // two tasks that cost the most.
    for (wallet, balance, admitted) in [("poor", "0.4", 1), ("other", "2", 2)] {
        gateway.wallet(wallet, &["--balance", balance]).await;
        let key = gateway.key(wallet, &[]).await;
        let body = json!({ "model": "maker/film", "prompt": "a boat [polls=1000000]" });
        let mut asked = JoinSet::new();
        for _ in 0..20 {
            let request = Request::post("/v1/videos/generations").json(&body);
            let (node, request) = (gateway.address(), request.bearer(&key.secret));
            asked.spawn(async move {
                let mut connection = Connection::open(node).await;
                connection.send(&request).await;
                connection.answer().await
            });
        }
        let answers = asked.join_all().await;
        let refused = answers.iter().filter(|answer| answer.status() == 402);
        let mut worst = 0;
        for refused in refused {
            assert_eq!(refused.failure().1, "insufficient_quota");
            worst += usize::from(refused.text().contains("could cost at most"));
        }
        let created = answers.iter().filter(|answer| answer.status() == 200);
        assert_eq!(created.count(), admitted, "{wallet}");
        // In the first case, the credits do not cover even the hold of a second task.
        assert_eq!(worst, if admitted == 1 { 0 } else { 18 }, "{wallet}");
        let shown = gateway.cli_json(&["wallet", "show", wallet]).await;
        assert_eq!(micro(&shown, "exposed"), 500_000 * admitted as u64);
    }
    gateway.verify().await;
}

/// If an upstream respects the caller's output limit, that limit bounds the exposure.
#[tokio::test]
async fn a_limit_that_the_upstream_keeps_is_the_worst_case() {
    let canned = CannedUpstream::paused(DEAREST).await;
    let entries = canned.entries();
    let keeping = entries.replace("[[model]]", "keeps_output_limit = true\n[[model]]");
    for (entries, admitted) in [(&entries, false), (&keeping, true)] {
        let gateway = GatewayBuilder::default()
            .setting("ledger", "debt_limit = \"0\"")
            .entries(entries)
            .start()
            .await;
        gateway.wallet("poor", &["--balance", "0.5"]).await;
        let key = gateway.key("poor", &[]).await;
        canned.release_answers();
        let body = with(
            ask("hello"),
            &json!({ "model": CANNED_MODEL, "max_tokens": 5 }),
        );
        let answer = gateway.chat(&key, &body).await;
        assert_eq!(answer.status() == 200, admitted, "{}", answer.text());
    }
}

#[tokio::test]
async fn the_limit_is_told_by_check() {
    let gateway = GatewayBuilder::default()
        .setting("ledger", "debt_limit = \"2.5\"")
        .start()
        .await;
    let checked = gateway.cli_json(&["check"]).await;
    assert_eq!(checked["debt_limit"], "2.5");
    assert_eq!(checked["channels"][0]["keeps_output_limit"], false);
    let shown = gateway.cli(&["check"]).await.stdout;
    assert!(
        shown.contains("at most 2.5 credits below a wallet's credit line"),
        "{shown}"
    );
}
