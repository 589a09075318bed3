//! Admission is all or nothing, and admits exactly what the wallet and the key allow (W7).

use serde_json::{Value, json};

use crate::harness::{
    Answer, CANNED_MODEL, CannedUpstream, Dialect, GatewayBuilder, Key, TestGateway, ask, cost,
    eventually, expected_cost, micro, model_via, with,
};

const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}"#;
/// The charge of a call with this answer.
const CHARGE: u64 = 33;

fn call() -> Value {
    with(ask("hello"), &json!({ "model": CANNED_MODEL }))
}

/// An amount of micro-credits in the notation of the command line.
fn credits(micro: u64) -> String {
    format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000)
}

/// A test gateway whose upstream holds back its answers, and the amount that one call freezes.
async fn gateway_with_paused_upstream() -> (TestGateway, CannedUpstream, u64) {
    let canned = CannedUpstream::paused(ANSWER).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let probe = async {
        canned.wait_for_requests(1).await;
        let hold = gateway.frozen(&key).await;
        canned.release_answers();
        hold
    };
    let body = call();
    let (answer, hold) = tokio::join!(gateway.chat(&key, &body), probe);
    answer.ok();
    canned.pause_answers();
    assert!(hold > cost(0, 0, crate::harness::OUTPUT_RESERVE), "{hold}");
    (gateway, canned, hold)
}

/// Sends all calls at once, and releases the upstream's answers when all but `admitted` calls have been answered.
async fn send_concurrently(
    gateway: &TestGateway,
    key: &Key,
    canned: &CannedUpstream,
    calls: usize,
    admitted: usize,
) -> Vec<Answer> {
    let body = call();
    let refused = std::cell::Cell::new(0);
    let one = async || {
        let answer = gateway.chat(key, &body).await;
        refused.set(refused.get() + 1);
        if refused.get() == calls - admitted {
            canned.release_answers();
        }
        answer
    };
    let calls = run_concurrently(calls, one);
    calls.await
}

/// Runs the same call this many times concurrently, in this task.
async fn run_concurrently<T>(count: usize, one: impl AsyncFn() -> T) -> Vec<T> {
    let mut running: Vec<_> = (0..count).map(|_| Box::pin(one())).collect();
    let mut done: Vec<Option<T>> = (0..count).map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (call, done) in running.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = call.as_mut().poll(cx)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// W7: two hundred calls at once, credits for seven.
#[tokio::test]
async fn a_wallet_funded_for_seven_admits_exactly_seven() {
    let (gateway, canned, hold) = gateway_with_paused_upstream().await;
    gateway
        .wallet("seven", &["--balance", &credits(7 * hold + hold / 2)])
        .await;
    let key = gateway.key("seven", &[]).await;
    let answers = send_concurrently(&gateway, &key, &canned, 200, 7).await;
    let admitted = answers
        .iter()
        .filter(|answer| answer.status() == 200)
        .count();
    assert_eq!(admitted, 7);
    for refused in answers.iter().filter(|answer| answer.status() != 200) {
        assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
        assert_eq!(refused.openai_error()["type"], "insufficient_quota");
    }
    let balance = gateway.balance(&key).await;
    assert_eq!(micro(&balance["wallet"], "frozen"), 0);
    assert_eq!(
        micro(&balance["wallet"], "balance"),
        7 * hold + hold / 2 - 7 * CHARGE
    );
    assert_eq!(canned.bodies().len(), 1 + 7);
    gateway.verify().await;
}

/// W7: a key's spending limit also counts its frozen credits.
#[tokio::test]
async fn a_spending_limit_admits_exactly_what_it_covers() {
    let (gateway, canned, hold) = gateway_with_paused_upstream().await;
    let key = gateway.key("w", &["--limit", &credits(3 * hold)]).await;
    let answers = send_concurrently(&gateway, &key, &canned, 20, 3).await;
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.status() == 200)
            .count(),
        3
    );
    for refused in answers.iter().filter(|answer| answer.status() != 200) {
        assert_eq!(refused.failure(), (402, "key_limit_reached".to_owned()));
    }
    // Charges are smaller than holds, so this much of the limit is left.
    let left = 3 * hold - 3 * CHARGE;
    assert_eq!(
        micro(&gateway.balance(&key).await["key"], "limit_remaining"),
        left
    );
    gateway.verify().await;
}

/// The concurrency of a key is its number of open holds.
#[tokio::test]
async fn a_concurrency_limit_admits_exactly_its_number() {
    let (gateway, canned, _) = gateway_with_paused_upstream().await;
    let key = gateway.key("w", &["--concurrency", "4"]).await;
    let answers = send_concurrently(&gateway, &key, &canned, 30, 4).await;
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.status() == 200)
            .count(),
        4
    );
    for refused in answers.iter().filter(|answer| answer.status() != 200) {
        assert_eq!(
            refused.failure(),
            (429, "concurrency_limit_exceeded".to_owned())
        );
        assert!(refused.header("retry-after").is_some());
    }
    // A call that has ended makes room for another.
    for _ in 0..10 {
        gateway.chat(&key, &call()).await.ok();
    }
}

#[tokio::test]
async fn requests_per_minute_are_a_burst_and_then_a_rate() {
    let (gateway, _) = TestGateway::funded().await;
    let key = gateway.key("w", &["--rpm", "3"]).await;
    for remaining in ["2", "1", "0"] {
        let answer = gateway.chat(&key, &ask("hello")).await.ok();
        assert_eq!(answer.header("x-ratelimit-limit-requests"), Some("3"));
        assert_eq!(
            answer.header("x-ratelimit-remaining-requests"),
            Some(remaining)
        );
        assert!(answer.header("x-ratelimit-reset-requests").is_some());
        assert!(answer.header("x-ratelimit-limit-tokens").is_none());
    }
    let spent = gateway.usage(&key).await;
    for _ in 0..5 {
        let refused = gateway.chat(&key, &ask("hello")).await;
        assert_eq!(refused.failure(), (429, "rate_limit_exceeded".to_owned()));
        assert_eq!(refused.openai_error()["type"], "rate_limit_error");
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        // One request becomes available every twenty seconds; refused calls do not delay it.
        assert!((1..=20).contains(&wait), "{wait}");
        assert_eq!(refused.header("x-ratelimit-limit-requests"), Some("3"));
        assert_eq!(refused.header("x-ratelimit-remaining-requests"), Some("0"));
        assert!(refused.header("x-ratelimit-reset-requests").is_some());
        assert!(refused.header("x-ratelimit-limit-tokens").is_none());
    }
    assert_eq!(gateway.upstream_calls(), 3);
    assert_eq!(gateway.usage(&key).await, spent);
    // Reads do not count as model calls.
    gateway.get(&key, "/v1/models").await.ok();
    // Another key of the wallet has its own limit.
    let other = gateway.key("w", &[]).await;
    gateway.chat(&other, &ask("hello")).await.ok();
}

/// A conversion asks the upstream for one choice, even if the caller asks for several.
#[tokio::test]
async fn a_converted_call_is_held_for_one_choice() {
    let (gateway, _) = GatewayBuilder::default().paired("sim-chat").await;
    // The balance is enough for a thousand tokens of output, but not for many times as much.
    gateway.wallet("small", &["--balance", "0.02"]).await;
    let key = gateway.key("small", &[]).await;
    for (upstream, is_converted) in [(Dialect::Messages, true), (Dialect::Chat, false)] {
        let many = json!({ "model": model_via(upstream), "n": 50, "max_tokens": 1000 });
        let answer = gateway.chat(&key, &with(ask("hello"), &many)).await;
        if is_converted {
            assert_eq!(answer.header("x-dropped-params"), Some("n"));
            assert_eq!(answer.ok().json()["choices"].as_array().unwrap().len(), 1);
        } else {
            assert_eq!(answer.failure(), (402, "insufficient_quota".to_owned()));
        }
    }
    gateway.verify().await;
}

/// W7: a refusal for missing credits does not count against the rate limits.
#[tokio::test]
async fn a_refusal_consumes_nothing() {
    let gateway = TestGateway::start().await;
    gateway.wallet("poor", &[]).await;
    let key = gateway
        .key("poor", &["--rpm", "2", "--tpm", "100000"])
        .await;
    let before = gateway.balance(&key).await;
    for _ in 0..5 {
        let refused = gateway.chat(&key, &ask("hello")).await;
        assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
        assert_eq!(refused.header("x-ratelimit-remaining-requests"), Some("2"));
    }
    assert_eq!(gateway.balance(&key).await, before);
    assert_eq!(gateway.upstream_calls(), 0);
    // W14: a top-up from the command line counts at the next call.
    gateway.cli_json(&["wallet", "topup", "poor", "1"]).await;
    for remaining in ["1", "0"] {
        let answer = gateway.chat(&key, &ask("hello")).await.ok();
        assert_eq!(
            answer.header("x-ratelimit-remaining-requests"),
            Some(remaining)
        );
    }
    gateway.verify().await;
}

#[tokio::test]
async fn tokens_per_minute_take_the_estimate_and_are_corrected() {
    let (gateway, canned, _) = gateway_with_paused_upstream().await;
    // Two calls of slightly more than a thousand tokens fit, three do not.
    let key = gateway.key("w", &["--tpm", "2500"]).await;
    let answers = send_concurrently(&gateway, &key, &canned, 12, 2).await;
    let admitted: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status() == 200)
        .collect();
    assert_eq!(admitted.len(), 2);
    for answer in &admitted {
        assert_eq!(answer.header("x-ratelimit-limit-tokens"), Some("2500"));
        assert!(answer.header("x-ratelimit-remaining-tokens").is_some());
    }
    for refused in answers.iter().filter(|answer| answer.status() != 200) {
        assert_eq!(refused.failure(), (429, "rate_limit_exceeded".to_owned()));
        assert!(refused.header("retry-after").is_some());
    }
    // Each call used twelve tokens of its estimated thousand. The rest was returned immediately.
    let answer = gateway.chat(&key, &call()).await.ok();
    let remaining: u64 = answer
        .header("x-ratelimit-remaining-tokens")
        .unwrap()
        .parse()
        .unwrap();
    assert!((1400..1500).contains(&remaining), "{remaining}");
}

#[tokio::test]
async fn a_call_above_the_whole_bucket_is_told_so() {
    let (gateway, _) = TestGateway::funded().await;
    let key = gateway.key("w", &["--tpm", "500"]).await;
    let refused = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(refused.failure(), (429, "rate_limit_exceeded".to_owned()));
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    assert_eq!(refused.header("retry-after"), None, "waiting does not help");
    assert_eq!(refused.header("x-ratelimit-limit-tokens"), Some("500"));
    assert_eq!(refused.header("x-ratelimit-remaining-tokens"), Some("500"));
    let small = with(ask("hello"), &json!({ "max_tokens": 100 }));
    gateway.chat(&key, &small).await.ok();
}

/// The hold is limited to what the model can produce, even if the caller asks for more.
#[tokio::test]
async fn a_bound_above_the_models_own_is_the_models() {
    let canned = CannedUpstream::json(ANSWER).await;
    // Here the model has no output limit of its own, so its context limits its output.
    let entries = canned.entries().replace(", max_output_tokens = 128000", "");
    let (gateway, key) = GatewayBuilder::default()
        .setting("ledger", "output_reserve_tokens = 0")
        .entries(&entries)
        .funded()
        .await;
    for bound in [json!(null), json!(200_000), json!(i64::MAX)] {
        let body = with(call(), &json!({ "max_tokens": bound }));
        gateway.chat(&key, &body).await.ok();
    }
    gateway.verify().await;
}

/// An estimate too large for any wallet is refused as insufficient credits, not as an internal error.
#[tokio::test]
async fn what_no_wallet_can_cover_is_refused_as_such() {
    let canned = CannedUpstream::json(ANSWER).await;
    let dear = canned
        .entries()
        .replace("output = \"10\"", "output = \"9000000\"");
    let (gateway, key) = GatewayBuilder::default()
        .setting("ledger", "output_reserve_tokens = 0")
        .entries(&dear)
        .funded()
        .await;
    let body = with(call(), &json!({ "n": u32::MAX }));
    let refused = gateway.chat(&key, &body).await;
    assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
    assert!(canned.bodies().is_empty());
}

/// W4, W5: a charge uses gift credits first, then the balance, then the credit line. A top-up repays the credit line
/// first.
#[tokio::test]
async fn a_credit_line_is_used_last_and_repaid_first() {
    let gateway = TestGateway::start().await;
    gateway
        .wallet(
            "line",
            &[
                "--gift",
                "0.00001",
                "--balance",
                "0.00002",
                "--credit-limit",
                "1",
            ],
        )
        .await;
    let key = gateway.key("line", &[]).await;
    let answer = gateway
        .chat(&key, &ask("reply with 50 words"))
        .await
        .ok()
        .json();
    let charge = expected_cost(&answer["usage"]);
    assert!(charge > 30);
    let balance = gateway.balance(&key).await;
    let wallet = &balance["wallet"];
    assert_eq!(micro(wallet, "gift_balance"), 0);
    assert_eq!(micro(wallet, "balance"), 0);
    assert_eq!(micro(wallet, "credit_used"), charge - 30);
    assert_eq!(micro(wallet, "credit_remaining"), 1_000_000 - (charge - 30));
    assert_eq!(micro(wallet, "available"), 0);
    assert_eq!(micro(&balance, "available"), 1_000_000 - (charge - 30));

    gateway.cli_json(&["wallet", "gift", "line", "2"]).await;
    let wallet = &gateway.balance(&key).await["wallet"];
    assert_eq!(
        micro(wallet, "credit_used"),
        charge - 30,
        "gifts repay nothing"
    );
    gateway.cli_json(&["wallet", "topup", "line", "1"]).await;
    let wallet = &gateway.balance(&key).await["wallet"];
    assert_eq!(micro(wallet, "credit_used"), 0);
    assert_eq!(micro(wallet, "balance"), 1_000_000 - (charge - 30));
    gateway.verify().await;
}

/// W6: a charge above the hold is booked in full, beyond every limit, and no balance becomes negative.
#[tokio::test]
async fn a_settlement_above_the_hold_is_booked_in_full() {
    let gateway = TestGateway::start().await;
    gateway
        .wallet("small", &["--balance", "0.05", "--credit-limit", "0.01"])
        .await;
    let key = gateway.key("small", &[]).await;
    gateway
        .sim
        .queue_faults("sim-chat", "chunks=9000", 1)
        .unwrap();
    let answer = gateway.chat(&key, &ask("go")).await.ok().json();
    let charge = expected_cost(&answer["usage"]);
    assert!(charge > 90_000);
    let wallet = &gateway.balance(&key).await["wallet"];
    assert_eq!(micro(wallet, "balance"), 0);
    assert_eq!(micro(wallet, "credit_used"), charge - 50_000);
    assert_eq!(micro(wallet, "credit_remaining"), 0);
    assert_eq!(micro(wallet, "total_available"), 0);
    let refused = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
    gateway.verify().await;
}

#[tokio::test]
async fn a_disabled_wallet_admits_nothing() {
    let (gateway, key) = TestGateway::funded().await;
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.cli_json(&["wallet", "disable", "w"]).await;
    let refused = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(refused.failure(), (403, "wallet_disabled".to_owned()));
    assert_eq!(refused.openai_error()["type"], "permission_error");
    assert_eq!(gateway.upstream_calls(), 1);
    gateway.cli_json(&["wallet", "enable", "w"]).await;
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.verify().await;
}

/// W11: an admitted call is finished and settled, even if its key and wallet are disabled meanwhile.
#[tokio::test]
async fn revoking_a_key_does_not_touch_its_open_calls() {
    let (gateway, canned, _) = gateway_with_paused_upstream().await;
    let key = gateway.key("w", &[]).await;
    let watcher = gateway.key("w", &[]).await;
    let spent = gateway.usage(&key).await;
    let body = call();
    let revoke = async {
        canned.wait_for_requests(2).await;
        gateway.cli_json(&["key", "disable", &key.id]).await;
        gateway.cli_json(&["wallet", "disable", "w"]).await;
        canned.release_answers();
    };
    let (answer, ()) = tokio::join!(gateway.chat(&key, &body), revoke);
    answer.ok();
    assert_eq!(spent, 0);
    assert_eq!(gateway.frozen(&watcher).await, 0);
    let shown = gateway.cli_json(&["key", "show", &key.id]).await;
    assert_eq!(micro(&shown, "usage"), CHARGE);
    gateway.verify().await;
}

/// A stream's hold grows with its output. If the next step is refused, the stream ends with an error.
#[tokio::test]
async fn a_stream_that_cannot_be_paid_any_further_ends_with_an_error() {
    let gateway = GatewayBuilder::default()
        .setting("ledger", "output_reserve_tokens = 100")
        .start()
        .await;
    gateway.wallet("thin", &["--balance", "0.004"]).await;
    let key = gateway.key("thin", &[]).await;
    gateway
        .sim
        .queue_faults("sim-chat", "chunks=2000+chunk-delay=1ms", 1)
        .unwrap();
    let (events, _) = gateway.stream(&key, &ask("go")).await.rest().await;
    let last = events.last().unwrap().json();
    assert_eq!(last["error"]["code"], "insufficient_quota", "{last}");
    assert!(events.len() > 50, "what was paid for was delivered");
    assert!(events.len() < 1500);
    assert!(events.iter().all(|event| !event.is_done()));
    let wallet = eventually("the settlement", async || {
        let balance = gateway.balance(&key).await["wallet"].clone();
        (micro(&balance, "frozen") == 0).then_some(balance)
    })
    .await;
    assert!(micro(&wallet, "balance") < 2000, "{wallet}");
    assert_eq!(micro(&wallet, "credit_used"), 0);
    gateway.verify().await;
}

#[tokio::test]
async fn a_stream_with_enough_credit_outgrows_its_first_hold() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("ledger", "output_reserve_tokens = 100")
        .funded()
        .await;
    gateway
        .sim
        .queue_faults("sim-chat", "chunks=1500+chunk-delay=1ms", 1)
        .unwrap();
    let body = with(
        ask("go"),
        &json!({ "stream_options": { "include_usage": true } }),
    );
    let mut stream = gateway.stream(&key, &body).await;
    let mut largest = 0;
    let mut usage = Value::Null;
    let mut count = 0;
    while let Some(event) = stream.next().await {
        if event.is_done() {
            break;
        }
        count += 1;
        if count % 300 == 0 {
            largest = gateway.frozen(&key).await.max(largest);
        }
        usage = event.json()["usage"].clone();
    }
    assert!(largest > cost(0, 0, 500), "{largest}");
    assert_eq!(gateway.usage(&key).await, expected_cost(&usage));
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

/// Admission refuses a key from the moment it expires.
#[tokio::test]
async fn a_key_expires_between_two_calls() {
    let (gateway, _) = TestGateway::funded().await;
    let key = gateway.key("w", &["--expires", "4s"]).await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let refused = eventually("the expiry", async || {
        let answer = gateway.chat(&key, &ask("hello")).await;
        (answer.status() != 200).then_some(answer)
    })
    .await;
    assert_eq!(refused.failure(), (401, "invalid_api_key".to_owned()));
}
