//! Channels that an operator disables: new calls use other channels, running calls finish, and the switch persists.

use serde_json::{Value, json};

use super::{TWO_CHANNELS, hello, tried};
use crate::admin::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, Key, TestGateway, eventually};
use crate::tasks::videos;

const ENTRIES: &str = r#"
    [[model]]
    id = "maker/two"
    kind = "text"
    routes = [
        { channel = "first", model = "route-a", priority = 0 },
        { channel = "second", model = "route-b", priority = 1 },
    ]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/only"
    kind = "text"
    routes = [{ channel = "first", model = "route-a" }]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
"#;

async fn switch(admin: &AdminClient<'_>, enabled: bool) -> Value {
    let body = json!({ "enabled": enabled });
    let answer = admin.send("PATCH", "/channels/first", Some(&body)).await;
    answer.ok().json()
}

fn named<'v>(list: &'v Value, member: &str, name: &str) -> &'v Value {
    let rows = list["data"].as_array().unwrap();
    rows.iter().find(|row| row[member] == *name).unwrap()
}

async fn assert_out(gateway: &TestGateway, key: &Key) {
    let admin = AdminClient::new(gateway);
    let refused = gateway.chat(key, &hello("maker/only")).await;
    assert_eq!(refused.failure(), (404, "model_not_found".to_owned()));
    let listed = gateway.get(key, "/v1/models").await.ok();
    assert!(!listed.text().contains("maker/only"));
    let models = admin.get("/models").await;
    let only = named(&models, "id", "maker/only");
    assert_eq!(only["callable"], false);
    assert_eq!(only["reason"], "no live channel (channel first: disabled)");
    assert_eq!(only["routes"][0]["reason"], "disabled");
    let two = named(&models, "id", "maker/two");
    assert_eq!(two["callable"], true);
    assert_eq!(two["routes"][0]["usable"], false);
    let channels = admin.get("/channels").await;
    let first = named(&channels, "name", "first");
    let shown = (
        &first["enabled"],
        &first["state"],
        &first["breaker"],
        &first["reason"],
    );
    assert_eq!(
        shown,
        (
            &json!(false),
            &json!("off"),
            &Value::Null,
            &json!("disabled")
        )
    );
}

#[tokio::test]
async fn a_disabled_channel_serves_no_new_call_and_running_ones_finish() {
    let (mut gateway, key) = with_token(GatewayBuilder::default())
        .entries(TWO_CHANNELS)
        .entries(ENTRIES)
        .funded()
        .await;
    gateway.chat(&key, &hello("maker/two")).await.ok();
    assert_eq!(tried(&gateway), (1, 0));
    let faults = "chunks=20+chunk-delay=20ms";
    gateway.sim.queue_faults("route-a", faults, 1).unwrap();
    let mut running = gateway.stream(&key, &hello("maker/two")).await;
    running.next().await.unwrap();
    {
        let admin = AdminClient::new(&gateway);
        let switched = switch(&admin, false).await;
        assert_eq!(
            switched,
            json!({ "name": "first", "enabled": false, "reason": "disabled", "models_out": ["maker/only"] })
        );
        gateway.chat(&key, &hello("maker/two")).await.ok();
        assert_eq!(tried(&gateway), (2, 1));
        assert_out(&gateway, &key).await;
        let (events, _) = running.rest().await;
        assert!(events.last().unwrap().data.contains("[DONE]"));
        // An operator can probe a disabled channel before callers use it again.
        let probe = admin.post("/channels/first/probe", &json!({})).await;
        assert_eq!(probe["ok"], true, "{probe}");
        let ready = gateway.admin_get("/readyz").await.ok().json();
        assert_eq!(ready["channels"]["first"], Value::Null);
    }
    // The switch is stored in the configuration.
    gateway.kill();
    gateway.restart().await;
    assert_out(&gateway, &key).await;
    let admin = AdminClient::new(&gateway);
    let switched = switch(&admin, true).await;
    assert_eq!(
        (&switched["reason"], &switched["models_out"]),
        (&Value::Null, &json!([]))
    );
    gateway.chat(&key, &hello("maker/only")).await.ok();
    let file = std::fs::read_to_string(gateway.config_file()).unwrap();
    assert!(!file.contains("enabled"), "{file}");
    let actions = admin.get("/audit?target=first").await;
    let actions: Vec<_> = actions["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["action"].clone())
        .collect();
    assert_eq!(
        actions,
        ["channel.enable", "channel.probe", "channel.disable"]
    );
    gateway.verify().await;
}

#[tokio::test]
async fn what_cannot_be_switched_is_told() {
    let gateway = with_token(GatewayBuilder::default())
        .entries(TWO_CHANNELS)
        .entries(ENTRIES)
        .start()
        .await;
    let admin = AdminClient::new(&gateway);
    let body = json!({ "enabled": false });
    let answer = admin.send("PATCH", "/channels/none", Some(&body)).await;
    assert_refused(&answer, 404, "not_found");
    for body in [
        json!({}),
        json!({ "enabled": "no" }),
        json!({ "enabled": true, "x": 1 }),
    ] {
        let answer = admin.send("PATCH", "/channels/first", Some(&body)).await;
        assert_refused(&answer, 400, "invalid_request");
    }
    let failed = gateway.cli(&["channel", "disable", "none"]).await;
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        failed.stderr.contains("there is no channel none"),
        "{}",
        failed.stderr
    );
}

/// The command changes the configuration of the running gateway, in the file or in the store.
#[tokio::test]
async fn the_command_line_switches_channels_of_a_running_gateway() {
    for kept_in in ["file", "store"] {
        let builder = with_token(GatewayBuilder::default())
            .setting("admin", &format!("config = \"{kept_in}\""));
        let (gateway, key) = builder
            .entries(TWO_CHANNELS)
            .entries(ENTRIES)
            .funded()
            .await;
        let off = gateway.cli_json(&["channel", "disable", "first"]).await;
        assert_eq!(
            (&off["live"], &off["reason"]),
            (&json!(false), &json!("disabled"))
        );
        assert_eq!(off["models_out"], json!(["maker/only"]));
        eventually("the switch", async || {
            let answer = gateway.chat(&key, &hello("maker/only")).await;
            (answer.status() == 404).then_some(())
        })
        .await;
        assert_out(&gateway, &key).await;
        let listed = gateway.cli_json(&["channel", "list"]).await;
        let live: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["name"].clone(), row["live"].clone()))
            .collect();
        assert_eq!(
            live,
            [
                (json!("main"), json!(true)),
                (json!("first"), json!(false)),
                (json!("second"), json!(true))
            ]
        );
        if kept_in == "file" {
            let checked = gateway.cli(&["check"]).await;
            assert!(
                checked
                    .stdout
                    .contains("no live channel (channel first: disabled)"),
                "{}",
                checked.stdout
            );
        }
        gateway.cli_json(&["channel", "enable", "first"]).await;
        eventually("the switch back", async || {
            let answer = gateway.chat(&key, &hello("maker/only")).await;
            (answer.status() == 200).then_some(())
        })
        .await;
    }
}

/// A task can only be polled at the channel where it runs.
#[tokio::test]
async fn tasks_of_a_disabled_channel_are_followed_to_their_end() {
    let (gateway, key) = with_token(videos::builder()).funded().await;
    let id = videos::create(&gateway, &key, &videos::video_body("a boat [polls=20]")).await;
    let admin = AdminClient::new(&gateway);
    let body = json!({ "enabled": false });
    admin
        .send("PATCH", "/channels/main", Some(&body))
        .await
        .ok();
    let refused = videos::post(
        &gateway,
        &key,
        "/v1/videos/generations",
        &videos::video_body("a cat"),
    )
    .await;
    assert_eq!(refused.failure(), (404, "model_not_found".to_owned()));
    let task = videos::wait_for_end(&gateway, &key, &id).await.json();
    assert_eq!(task["status"], "done", "{task}");
    assert_eq!(gateway.frozen(&key).await, 0);
    assert!(gateway.usage(&key).await > 0);
}
