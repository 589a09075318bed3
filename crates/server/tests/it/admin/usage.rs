//! `/admin/v1/usage` and `/admin/v1/attention`.

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, ask, eventually, expected_cost, with};
use crate::tasks::videos;

#[tokio::test]
async fn usage_counts_what_calls_said() {
    let (gateway, key) = with_token(GatewayBuilder::default()).funded().await;
    gateway.wallet("other", &["--balance", "5"]).await;
    let other = gateway.key("other", &[]).await;
    let mut charge = 0;
    let mut output = 0;
    for key in [&key, &key, &other] {
        let usage = gateway.chat(key, &ask("count to 5")).await.ok().json()["usage"].clone();
        charge += expected_cost(&usage);
        output += usage["completion_tokens"].as_u64().unwrap();
    }
    let missing = with(ask("hello"), &json!({ "model": "maker/none" }));
    assert_eq!(gateway.chat(&key, &missing).await.status(), 404);
    let admin = AdminClient::new(&gateway);
    let whole = eventually("the counts", async || {
        let report = admin.get("/usage").await;
        let row = report["data"][0].clone();
        (row["requests"] == 4).then_some(row)
    })
    .await;
    assert_eq!(whole["errors"], 1);
    assert_eq!(whole["charge_micro"], charge.to_string());
    assert_eq!(whole["output_tokens"], output);
    assert_eq!(
        (&whole["cost"], &whole["margin"]),
        (&Value::Null, &Value::Null)
    );
    let figure = |name: &str| whole[name].as_f64().unwrap();
    assert!(figure("latency_p50_ms") <= figure("latency_p95_ms"));
    assert!(figure("first_byte_p95_ms") > 0.0);
    assert!(whole.get("model").is_none() && whole.get("at").is_none());

    for step in ["minute", "hour", "day", "month"] {
        let report = admin
            .get(&format!("/usage?step={step}&by=model,channel"))
            .await;
        let rows = report["data"].as_array().unwrap();
        let requests = |model: &str, channel: &str| -> u64 {
            let of = rows
                .iter()
                .filter(|row| row["model"] == model && row["channel"] == channel);
            of.map(|row| row["requests"].as_u64().unwrap()).sum()
        };
        assert_eq!(
            (requests("maker/chat", "main"), requests("", "")),
            (3, 1),
            "{step}"
        );
        assert!(rows.iter().all(|row| row["at"].is_i64()), "{step}");
    }
    let by_wallet = admin.get("/usage?by=wallet&model=maker/chat").await;
    let mut by_name: Vec<_> = by_wallet["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["wallet_name"].as_str().unwrap(),
                row["requests"].as_u64().unwrap(),
            )
        })
        .collect();
    by_name.sort_unstable();
    assert_eq!(by_name, [("other", 1), ("w", 2)]);
    let of_key = admin
        .get(&format!("/usage?by=key,endpoint&key={}", other.id))
        .await;
    assert_eq!(of_key["data"][0]["key"], other.id);
    assert_eq!(of_key["data"][0]["endpoint"], "/v1/chat/completions");
    let before = admin.get("/usage?from=0&to=1000").await;
    assert_eq!(before["data"], json!([]));
}

#[tokio::test]
async fn a_report_that_cannot_be_made_is_refused() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    for (query, param) in [
        ("step=week", "step"),
        ("by=colour", "by"),
        ("by=model,", "by"),
        ("from=5&to=5", "from"),
        ("step=minute&from=0", "from"),
        ("wallet=nobody", "wallet"),
        ("colour=red", "colour"),
    ] {
        let answer = AdminClient::new(&gateway)
            .send("GET", &format!("/usage?{query}"), None)
            .await;
        assert_eq!(
            assert_refused(&answer, 400, "invalid_request"),
            param,
            "{query}"
        );
    }
}

#[tokio::test]
async fn failing_calls_need_attention() {
    let (gateway, key) = with_token(GatewayBuilder::default()).funded().await;
    let admin = AdminClient::new(&gateway);
    assert_eq!(admin.get("/attention").await["data"], json!([]));
    let missing = with(ask("hello"), &json!({ "model": "maker/none" }));
    for _ in 0..25 {
        assert_eq!(gateway.chat(&key, &missing).await.status(), 404);
    }
    let notice = eventually("a notice", async || {
        let found = admin.get("/attention").await;
        found["data"].as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!(notice["severity"], "bad");
    assert!(
        notice["message"].as_str().unwrap().contains("failed"),
        "{notice}"
    );
    assert!(notice["link"].as_str().unwrap().starts_with("#/requests"));
}

#[tokio::test]
async fn a_failed_call_is_counted_for_the_channel_that_failed() {
    let (gateway, key) = with_token(GatewayBuilder::default()).funded().await;
    let admin = AdminClient::new(&gateway);
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway
        .sim
        .queue_faults("sim-chat", "status=500", 1)
        .unwrap();
    let failed = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(failed.status(), 502);
    let missing = with(ask("hello"), &json!({ "model": "maker/none" }));
    assert_eq!(gateway.chat(&key, &missing).await.status(), 404);
    let rows = eventually("the counts", async || {
        let rows = admin.get("/usage?by=channel").await["data"].clone();
        let requests = |row: &Value| row["requests"].as_u64().unwrap();
        let all: u64 = rows.as_array().unwrap().iter().map(requests).sum();
        (all == 3).then_some(rows)
    })
    .await;
    let counts = |row: &Value| {
        (
            row["channel"].clone(),
            row["requests"].clone(),
            row["errors"].clone(),
        )
    };
    let counted: Vec<_> = rows.as_array().unwrap().iter().map(counts).collect();
    assert_eq!(
        counted,
        [
            (json!(""), json!(1), json!(1)),
            (json!("main"), json!(2), json!(1)),
        ]
    );
    let id = failed.header("x-request-id").unwrap();
    let call = admin.get(&format!("/calls/{id}")).await;
    assert_eq!(call["channel"], "main");
    assert_eq!(call["attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_charge_of_a_task_counts_in_usage_and_makes_no_second_call() {
    let (gateway, key) = with_token(videos::builder())
        .setting("telemetry", "wallet_series = 10")
        .funded()
        .await;
    let admin = AdminClient::new(&gateway);
    let body = videos::video_body("a boat");
    let done = videos::create(&gateway, &key, &body).await;
    videos::wait_for_end(&gateway, &key, &done).await;
    let refused = videos::create(&gateway, &key, &videos::video_body("[refuse]")).await;
    videos::wait_for_end(&gateway, &key, &refused).await;
    let charged = gateway.usage(&key).await.to_string();
    assert_ne!(charged, "0");
    for by in ["model,channel", "key,endpoint", "wallet,model"] {
        let row = eventually("the charge", async || {
            let report = admin.get(&format!("/usage?by={by}")).await;
            let rows = report["data"].as_array().unwrap();
            let is_charged = |row: &&Value| row["charge_micro"] == *charged;
            let row = rows.iter().find(is_charged)?;
            // The calls that created the tasks are in the same row as the charge.
            assert_eq!(rows.len(), 1, "{report}");
            Some(row.clone())
        })
        .await;
        let counts = (&row["requests"], &row["errors"]);
        assert_eq!(counts, (&json!(2), &json!(0)), "{by}");
    }
    let calls = admin.get("/calls").await;
    assert_eq!(calls["data"].as_array().unwrap().len(), 2, "{calls}");
    let metrics = gateway.admin_get("/metrics").await.ok();
    let metrics = metrics.text();
    let line = "tollgate_wallet_charged_micro_credits_total{wallet=";
    let counted = metrics
        .lines()
        .filter(|it| it.starts_with(line))
        .find(|it| it.ends_with(&format!(" {charged}")));
    assert!(counted.is_some(), "{metrics}");
}
