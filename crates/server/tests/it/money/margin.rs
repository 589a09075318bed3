//! Upstream costs of calls, and the margin that their charges leave.

use serde_json::{Value, json};

use crate::harness::{
    GatewayBuilder, Key, Request, TestGateway, ask, eventually, expected_cost, with,
};
use crate::tasks::videos;

/// Every cost is half of the price, except for a second of video. The routes of the channel `main` have no known cost.
const ENTRIES: &str = r#"
[[channel]]
name = "near"
preset = "sim"
base_url = "http://SIM/v1"
credential = { file = "upstream-key" }

[[model]]
id = "maker/resold"
kind = "text"
routes = [
    { channel = "near", model = "sim-chat", cost = { input = "0.625", cached_input = "0.0625", output = "5" } },
    { channel = "main", model = "sim-chat", priority = 1 },
]
price = { input = "1.25", cached_input = "0.125", output = "10" }
profile = { context_tokens = 400000, max_output_tokens = 128000 }

[[model]]
id = "maker/numbers"
kind = "embedding"
routes = [{ channel = "near", model = "sim-embed", cost = { input = "500" } }]
price = { input = "1000" }
profile = { context_tokens = 8192 }

[[model]]
id = "maker/film"
kind = "video"
routes = [{ channel = "near", model = "sim-video", cost = { video_second = "0.02", usd = "1" } }]
price = { video_second = "0.05", usd = "2" }
profile = { base = "video-a" }
"#;

/// The lines of a report by channel and model.
async fn report(gateway: &TestGateway, key: &Key) -> Vec<Value> {
    // `/v1/balance` returns durable state, so commands see the charges too.
    gateway.balance(key).await;
    let arguments = ["ledger", "report", "--by", "channel,model", "--json"];
    let output = gateway.cli(&arguments).await;
    let lines = output.stdout.lines();
    lines.map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn line(rows: &[Value], channel: &str, model: &str) -> Value {
    let of = |row: &&Value| row["channel"] == channel && row["model"] == model;
    let found = rows.iter().find(of);
    found.unwrap_or_else(|| panic!("{rows:#?}")).clone()
}

fn micro(row: &Value, name: &str) -> i64 {
    row[name].as_str().unwrap().parse().unwrap()
}

async fn resold(gateway: &TestGateway, key: &Key) -> u64 {
    let body = with(ask("count to 7"), &json!({ "model": "maker/resold" }));
    let answer = gateway.chat(key, &body).await.ok();
    expected_cost(&answer.json()["usage"])
}

#[tokio::test]
async fn the_route_that_answers_gives_the_cost_and_no_other() {
    let (gateway, key) = GatewayBuilder::default().entries(ENTRIES).funded().await;
    let costed = resold(&gateway, &key).await;
    // The first route fails, and the cost of the second one is not known.
    gateway.sim.queue_faults("*", "status=503", 1).unwrap();
    let unknown = resold(&gateway, &key).await;
    assert_eq!(gateway.upstream_calls(), 3);
    let rows = report(&gateway, &key).await;
    let known = line(&rows, "near", "maker/resold");
    assert_eq!(known["charge_micro"], costed.to_string(), "{known}");
    let cost = micro(&known, "cost_micro");
    // The cost is half of the charge. Both are rounded up.
    let half = i64::try_from(costed).unwrap() / 2;
    assert!((half..=half + 1).contains(&cost), "{known}");
    assert_eq!(
        micro(&known, "margin_micro"),
        i64::try_from(costed).unwrap() - cost
    );
    assert_eq!(known["costed_entries"], 1);
    let other = line(&rows, "-", "maker/resold");
    assert_eq!(other["charge_micro"], unknown.to_string(), "{other}");
    assert_eq!(
        (&other["cost_micro"], &other["margin_micro"]),
        (&Value::Null, &Value::Null)
    );
    // In the total, the margin counts only the call whose cost is known.
    let both = gateway
        .cli_json(&["ledger", "report", "--by", "model"])
        .await;
    assert_eq!(both["margin_micro"], known["margin_micro"], "{both}");
    assert_eq!(both["charge_micro"], (costed + unknown).to_string());
    gateway.verify().await;
}

#[tokio::test]
async fn the_journal_tells_what_a_call_cost() {
    let (gateway, key) = GatewayBuilder::default().entries(ENTRIES).funded().await;
    resold(&gateway, &key).await;
    let cost = micro(&report(&gateway, &key).await[0], "cost_micro");
    let row = eventually("the row", async || {
        let output = gateway.cli(&["logs", "--json"]).await;
        serde_json::from_str::<Value>(output.stdout.lines().next()?).ok()
    })
    .await;
    assert_eq!(row["cost_micro"], cost.to_string(), "{row}");
}

#[tokio::test]
async fn embeddings_and_tasks_have_costs_too() {
    let builder = videos::builder().entries(ENTRIES);
    let (gateway, key) = builder.funded().await;
    let body = json!({ "model": "maker/numbers", "input": "a few words to count" });
    let request = Request::post("/v1/embeddings")
        .json(&body)
        .bearer(&key.secret);
    gateway.send(&request).await.ok();
    let video_body = json!({ "model": "maker/film", "prompt": "a boat", "seconds": "6" });
    let id = videos::create(&gateway, &key, &video_body).await;
    videos::wait_for_end(&gateway, &key, &id).await;
    let rows = report(&gateway, &key).await;
    for model in ["maker/numbers", "maker/film"] {
        let row = line(&rows, "near", model);
        let (charge, cost) = (micro(&row, "charge_micro"), micro(&row, "cost_micro"));
        assert!(cost > 0 && charge == 2 * cost, "{row}");
        assert_eq!(micro(&row, "margin_micro"), charge - cost);
    }
    gateway.verify().await;
}
