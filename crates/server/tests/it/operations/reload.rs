//! A changed configuration takes effect as a whole or not at all.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Key, TestGateway, ask, eventually, expected_cost, signal, with};

fn add(file: &Path, text: &str) {
    let mut config = std::fs::read_to_string(file).unwrap();
    config.push_str(text);
    // Rename the new file into place, as careful editors and deployments do.
    let beside = file.with_extension("new");
    std::fs::write(&beside, config).unwrap();
    std::fs::rename(beside, file).unwrap();
}

async fn listed(gateway: &TestGateway, key: &Key) -> Vec<Value> {
    let list = gateway.get(key, "/v1/models").await.ok().json();
    let entries = list["data"].as_array().unwrap();
    entries.iter().map(|entry| entry["id"].clone()).collect()
}

const NEW: &str = r#"
[[model]]
id = "maker/new"
kind = "text"
routes = [{ channel = "main", model = "sim-chat" }]
price = { input = "1", output = "2" }
profile = { max_output_tokens = 1000 }
"#;

#[tokio::test]
async fn a_changed_file_is_taken_up() {
    let (gateway, key) = TestGateway::funded().await;
    assert!(!listed(&gateway, &key).await.contains(&json!("maker/new")));
    add(gateway.config_file(), NEW);
    eventually("the new model", async || {
        listed(&gateway, &key)
            .await
            .contains(&json!("maker/new"))
            .then_some(())
    })
    .await;
    let body = with(ask("say exactly: new"), &json!({ "model": "maker/new" }));
    let answer = gateway.chat(&key, &body).await.ok().json();
    assert_eq!(answer["model"], "maker/new");
    gateway.verify().await;
}

#[tokio::test]
async fn a_hangup_reloads_at_once() {
    let (mut gateway, key) = TestGateway::funded().await;
    add(gateway.config_file(), NEW);
    signal("HUP", gateway.pid());
    let reloaded = |line: &str| line.contains("the configuration is reloaded");
    gateway.process().line("the reload", reloaded).await;
    assert!(listed(&gateway, &key).await.contains(&json!("maker/new")));
}

/// R5: the old configuration stays in force, and the error names line and key.
#[tokio::test]
async fn a_bad_file_changes_nothing_and_is_reported() {
    let (mut gateway, key) = TestGateway::funded().await;
    let lines = std::fs::read_to_string(gateway.config_file())
        .unwrap()
        .lines()
        .count();
    let broken = "\n[[model]]\nid = \"maker/broken\"\nkind = \"text\"\nroutes = [{ channel = \"nowhere\", model = \"x\" }]\nprice = { input = \"one\", output = \"2\" }\n";
    add(gateway.config_file(), broken);
    signal("HUP", gateway.pid());
    let not_reloaded = |line: &str| line.contains("the configuration is not reloaded");
    let line = gateway.process().line("the report", not_reloaded).await;
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "ERROR");
    gateway
        .process()
        .line("the last problem", |line| line.contains("price"))
        .await;
    let log = gateway.log().join("\n");
    for part in [
        "nowhere",
        "price",
        &format!("{}", lines + 5),
        "tollgate.toml",
    ] {
        assert!(log.contains(part), "{part} is not in {log}");
    }
    assert_eq!(listed(&gateway, &key).await.len(), 3);
    gateway.chat(&key, &ask("hello")).await.ok();
    // The gateway loads the file once it is corrected.
    let mended = std::fs::read_to_string(gateway.config_file())
        .unwrap()
        .replace(broken, NEW);
    std::fs::write(gateway.config_file(), mended).unwrap();
    signal("HUP", gateway.pid());
    eventually("the mended file", async || {
        (listed(&gateway, &key).await.len() == 4).then_some(())
    })
    .await;
}

/// Streams are not cut, and a call keeps the prices that it was admitted at (N7).
#[tokio::test]
async fn a_reload_does_not_touch_open_calls() {
    let (mut gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "chunks=60+chunk-delay=20ms", 1)
        .unwrap();
    let body = with(
        ask("go"),
        &json!({ "stream_options": { "include_usage": true } }),
    );
    let mut stream = gateway.stream(&key, &body).await;
    stream.next().await.unwrap();
    let config = std::fs::read_to_string(gateway.config_file()).unwrap();
    let dearer = config.replacen(
        "input = \"1.25\", cached_input = \"0.125\", output = \"10\"",
        "input = \"2.5\", output = \"20\"",
        1,
    );
    assert_ne!(config, dearer);
    std::fs::write(gateway.config_file(), dearer).unwrap();
    signal("HUP", gateway.pid());
    let reloaded = |line: &str| line.contains("the configuration is reloaded");
    gateway.process().line("the reload", reloaded).await;
    let (events, _) = stream.rest().await;
    assert!(events.last().unwrap().is_done());
    let usage = events[events.len() - 2].json()["usage"].clone();
    let spent = gateway.usage(&key).await;
    assert_eq!(spent, expected_cost(&usage));
    // The next call is charged the new price: twice the old one, rounded up once.
    let usage = gateway
        .chat(&key, &ask("reply with 9 words"))
        .await
        .ok()
        .json()["usage"]
        .clone();
    let input = usage["prompt_tokens"].as_u64().unwrap();
    let output = usage["completion_tokens"].as_u64().unwrap();
    let charge = (input * 25 + output * 200).div_ceil(10);
    assert_eq!(gateway.usage(&key).await - spent, charge);
    gateway.verify().await;
}

/// For settings outside of the catalog, the log says that a restart is needed.
#[tokio::test]
async fn settings_that_need_a_restart_say_so() {
    let (mut gateway, _) = TestGateway::funded().await;
    let config = std::fs::read_to_string(gateway.config_file()).unwrap();
    let changed = config.replacen("shutdown_drain_ms = 5000", "shutdown_drain_ms = 6000", 1);
    assert_ne!(config, changed);
    std::fs::write(gateway.config_file(), changed).unwrap();
    signal("HUP", gateway.pid());
    gateway
        .process()
        .line("the advice", |line| line.contains("after a restart"))
        .await;
}
