//! `GET /v1/balance`: the documented shape, and charges computed by hand from the price card.

use serde_json::{Value, json};

use crate::harness::{
    GatewayBuilder, TestGateway, ask, cost, eventually, expected_cost, micro, with,
};

/// Sets an amount in credits and in micro-credits.
fn both(object: &mut Value, name: &str, credits: &str, micro: &str) {
    object[name] = json!(credits);
    object[format!("{name}_micro")] = json!(micro);
}

#[tokio::test]
async fn a_balance_has_exactly_the_contracts_members() {
    let gateway = TestGateway::start().await;
    gateway
        .wallet(
            "w",
            &["--balance", "100", "--gift", "5.25", "--credit-limit", "50"],
        )
        .await;
    let options = [
        "--limit",
        "10.000001",
        "--rpm",
        "60",
        "--tpm",
        "100000",
        "--concurrency",
        "4",
    ];
    let limited = gateway
        .key("w", &[&options[..], &["--expires", "30d"]].concat())
        .await;
    let unlimited = gateway.key("w", &[]).await;

    let mut wallet = json!({ "status": "active" });
    both(&mut wallet, "available", "105.25", "105250000");
    both(&mut wallet, "total_available", "155.25", "155250000");
    both(&mut wallet, "balance", "100", "100000000");
    both(&mut wallet, "gift_balance", "5.25", "5250000");
    both(&mut wallet, "frozen", "0", "0");
    both(&mut wallet, "credit_limit", "50", "50000000");
    both(&mut wallet, "credit_used", "0", "0");
    both(&mut wallet, "credit_remaining", "50", "50000000");

    let answer = gateway.get(&limited, "/v1/balance").await.ok();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let mut shown = answer.json();
    let expires_at = shown["key"]["expires_at"].take().as_i64().unwrap();
    let days = (expires_at - now_ms()) / 86_400_000;
    assert_eq!(days, 29, "thirty days less the moment since");
    let mut key = json!({
        "rpm_limit": 60,
        "tpm_limit": 100_000,
        "concurrency_limit": 4,
        "expires_at": null,
    });
    both(&mut key, "limit", "10.000001", "10000001");
    both(&mut key, "usage", "0", "0");
    both(&mut key, "limit_remaining", "10.000001", "10000001");
    let mut expected = json!({ "object": "balance", "key": key, "wallet": wallet });
    both(&mut expected, "available", "10.000001", "10000001");
    assert_eq!(shown, expected);

    let shown = gateway.balance(&unlimited).await;
    let mut key = json!({
        "limit": null,
        "limit_micro": null,
        "limit_remaining": null,
        "limit_remaining_micro": null,
        "rpm_limit": null,
        "tpm_limit": null,
        "concurrency_limit": null,
        "expires_at": null,
    });
    both(&mut key, "usage", "0", "0");
    assert_eq!(shown["key"], key);
    assert_eq!(shown["available"], "155.25");
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_millis().try_into().unwrap()
}

/// N3, W5: the exact sum is rounded up once, and gift credits are used before the balance.
#[tokio::test]
async fn a_call_costs_the_price_card_applied_by_hand() {
    let gateway = TestGateway::start().await;
    gateway
        .wallet("w", &["--balance", "10", "--gift", "0.0003"])
        .await;
    let key = gateway.key("w", &[]).await;
    let mut spent = 0;
    for (prompt, faults) in [
        ("say exactly: one two three", ""),
        ("reply with 57 words", ""),
        (
            "reply with 33 words, please, and read all of this with care",
            "cached=7",
        ),
    ] {
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        let answer = gateway.chat(&key, &ask(prompt)).await.ok().json();
        let usage = &answer["usage"];
        assert!(usage["prompt_tokens"].as_u64().unwrap() > 0);
        if faults == "cached=7" {
            assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 7);
        }
        spent += expected_cost(usage);
        let balance = gateway.balance(&key).await;
        assert_eq!(micro(&balance["key"], "usage"), spent, "{prompt}");
        assert_eq!(
            micro(&balance["wallet"], "gift_balance"),
            300_u64.saturating_sub(spent)
        );
        let paid = 10_000_000 - spent.saturating_sub(300);
        assert_eq!(micro(&balance["wallet"], "balance"), paid);
        assert_eq!(micro(&balance["wallet"], "frozen"), 0);
        assert_eq!(micro(&balance, "available"), 10_000_300 - spent);
    }
    gateway.verify().await;
}

/// W1, W13: the hold is visible while the call runs, the charge once it has ended.
#[tokio::test]
async fn a_slow_call_freezes_its_hold_and_gives_it_back() {
    let (gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "first-byte=1500ms", 1)
        .unwrap();
    let body = with(ask("reply with 20 words"), &json!({ "max_tokens": 300 }));
    let call = gateway.chat(&key, &body);
    let watch = eventually("a frozen hold", async || {
        let balance = gateway.balance(&key).await;
        (micro(&balance["wallet"], "frozen") > 0).then_some(balance)
    });
    let (answer, during) = tokio::join!(call, watch);
    let frozen = micro(&during["wallet"], "frozen");
    // The caller's output limit is below the reserve, so the hold covers the whole limit.
    assert!(
        frozen > cost(0, 0, 300) && frozen < cost(100, 0, 300),
        "{frozen}"
    );
    assert_eq!(micro(&during["wallet"], "available"), 100_000_000 - frozen);
    assert_eq!(micro(&during, "available"), 100_000_000 - frozen);
    assert_eq!(micro(&during["wallet"], "balance"), 100_000_000);
    assert_eq!(micro(&during["key"], "usage"), 0);

    let charge = expected_cost(&answer.ok().json()["usage"]);
    let after = gateway.balance(&key).await;
    assert!(charge < frozen);
    assert_eq!(micro(&after["wallet"], "frozen"), 0);
    assert_eq!(micro(&after["wallet"], "balance"), 100_000_000 - charge);
    gateway.verify().await;
}

/// The balance endpoint still answers 200 to a key at its limit.
#[tokio::test]
async fn a_key_at_its_limit_may_still_look() {
    let gateway = TestGateway::start().await;
    gateway.wallet("w", &["--balance", "100"]).await;
    let key = gateway.key("w", &["--limit", "0.02"]).await;
    // Usage above the hold is booked in full. Here the charge exceeds the key's own limit (W6).
    gateway
        .sim
        .queue_faults("sim-chat", "chunks=3000", 1)
        .unwrap();
    let answer = gateway.chat(&key, &ask("go")).await.ok().json();
    let balance = gateway.balance(&key).await;
    assert_eq!(
        micro(&balance["key"], "usage"),
        expected_cost(&answer["usage"])
    );
    assert!(micro(&balance["key"], "usage") > 20_000);
    for name in ["limit_remaining", "limit_remaining_micro"] {
        assert_eq!(balance["key"][name], "0");
    }
    assert_eq!(balance["available"], "0");
    let refused = gateway.chat(&key, &ask("again")).await;
    assert_eq!(refused.failure(), (402, "key_limit_reached".to_owned()));
    gateway.verify().await;
}

#[tokio::test]
async fn a_disabled_wallet_shows_nothing_available() {
    let (gateway, key) = TestGateway::funded().await;
    gateway.cli_json(&["wallet", "disable", "w"]).await;
    let balance = gateway.balance(&key).await;
    assert_eq!(balance["wallet"]["status"], "disabled");
    assert_eq!(
        (&balance["available"], &balance["available_micro"]),
        (&json!("0"), &json!("0"))
    );
    assert_eq!(balance["wallet"]["balance"], "100");
    gateway.get(&key, "/v1/models").await.ok();
}

/// With `ledger.commit = "behind"`, answers do not wait for the disk. The charges are the same.
#[tokio::test]
async fn commits_behind_the_answer_bill_the_same() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("ledger", "commit = \"behind\"")
        .funded()
        .await;
    let mut spent = 0;
    for count in 1..=20 {
        let prompt = format!("reply with {count} words");
        let answer = gateway.chat(&key, &ask(&prompt)).await.ok().json();
        spent += expected_cost(&answer["usage"]);
        assert_eq!(gateway.usage(&key).await, spent);
    }
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}
