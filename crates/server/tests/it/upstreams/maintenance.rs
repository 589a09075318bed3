//! Channels that an operator disables: new calls use other channels, running calls finish, and the switch persists.

use serde_json::{Value, json};

use super::{TWO_CHANNELS, hello, tried};
use crate::admin::{Admin, assert_refused, with_token};
use crate::harness::{Key, Plot, Stage, eventually};
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

async fn switch(admin: &Admin<'_>, enabled: bool) -> Value {
    let body = json!({ "enabled": enabled });
    let answer = admin.send("PATCH", "/channels/first", Some(&body)).await;
    answer.ok().json()
}

fn named<'v>(list: &'v Value, member: &str, name: &str) -> &'v Value {
    let rows = list["data"].as_array().unwrap();
    rows.iter().find(|row| row[member] == *name).unwrap()
}

async fn assert_out(stage: &Stage, key: &Key) {
    let admin = Admin::of(stage);
    let refused = stage.chat(key, &hello("maker/only")).await;
    assert_eq!(refused.failure(), (404, "model_not_found".to_owned()));
    let listed = stage.get(key, "/v1/models").await.ok();
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
    let (mut stage, key) = with_token(Plot::default())
        .entries(TWO_CHANNELS)
        .entries(ENTRIES)
        .funded()
        .await;
    stage.chat(&key, &hello("maker/two")).await.ok();
    assert_eq!(tried(&stage), (1, 0));
    let faults = "chunks=20+chunk-delay=20ms";
    stage.sim.queue_faults("route-a", faults, 1).unwrap();
    let mut running = stage.stream(&key, &hello("maker/two")).await;
    running.next().await.unwrap();
    {
        let admin = Admin::of(&stage);
        let switched = switch(&admin, false).await;
        assert_eq!(
            switched,
            json!({ "name": "first", "enabled": false, "reason": "disabled", "models_out": ["maker/only"] })
        );
        stage.chat(&key, &hello("maker/two")).await.ok();
        assert_eq!(tried(&stage), (2, 1));
        assert_out(&stage, &key).await;
        let (events, _) = running.rest().await;
        assert!(events.last().unwrap().data.contains("[DONE]"));
        // An operator can probe a disabled channel before callers use it again.
        let probe = admin.post("/channels/first/probe", &json!({})).await;
        assert_eq!(probe["ok"], true, "{probe}");
        let ready = stage.admin_get("/readyz").await.ok().json();
        assert_eq!(ready["channels"]["first"], Value::Null);
    }
    // The switch is stored in the configuration.
    stage.kill();
    stage.restart().await;
    assert_out(&stage, &key).await;
    let admin = Admin::of(&stage);
    let switched = switch(&admin, true).await;
    assert_eq!(
        (&switched["reason"], &switched["models_out"]),
        (&Value::Null, &json!([]))
    );
    stage.chat(&key, &hello("maker/only")).await.ok();
    let file = std::fs::read_to_string(stage.config_file()).unwrap();
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
    stage.verify().await;
}

#[tokio::test]
async fn what_cannot_be_switched_is_told() {
    let stage = with_token(Plot::default())
        .entries(TWO_CHANNELS)
        .entries(ENTRIES)
        .open()
        .await;
    let admin = Admin::of(&stage);
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
    let failed = stage.cli(&["channel", "disable", "none"]).await;
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
        let plot = with_token(Plot::default()).setting("admin", &format!("config = \"{kept_in}\""));
        let (stage, key) = plot.entries(TWO_CHANNELS).entries(ENTRIES).funded().await;
        let off = stage.cli_json(&["channel", "disable", "first"]).await;
        assert_eq!(
            (&off["live"], &off["reason"]),
            (&json!(false), &json!("disabled"))
        );
        assert_eq!(off["models_out"], json!(["maker/only"]));
        eventually("the switch", async || {
            let answer = stage.chat(&key, &hello("maker/only")).await;
            (answer.status() == 404).then_some(())
        })
        .await;
        assert_out(&stage, &key).await;
        let listed = stage.cli_json(&["channel", "list"]).await;
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
            let checked = stage.cli(&["check"]).await;
            assert!(
                checked
                    .stdout
                    .contains("no live channel (channel first: disabled)"),
                "{}",
                checked.stdout
            );
        }
        stage.cli_json(&["channel", "enable", "first"]).await;
        eventually("the switch back", async || {
            let answer = stage.chat(&key, &hello("maker/only")).await;
            (answer.status() == 200).then_some(())
        })
        .await;
    }
}

/// A task can only be polled at the channel where it runs.
#[tokio::test]
async fn tasks_of_a_disabled_channel_are_followed_to_their_end() {
    let (stage, key) = with_token(videos::plot()).funded().await;
    let id = videos::create(&stage, &key, &videos::film("a boat [polls=20]")).await;
    let admin = Admin::of(&stage);
    let body = json!({ "enabled": false });
    admin
        .send("PATCH", "/channels/main", Some(&body))
        .await
        .ok();
    let refused = videos::post(
        &stage,
        &key,
        "/v1/videos/generations",
        &videos::film("a cat"),
    )
    .await;
    assert_eq!(refused.failure(), (404, "model_not_found".to_owned()));
    let task = videos::ended(&stage, &key, &id).await.json();
    assert_eq!(task["status"], "done", "{task}");
    assert_eq!(stage.frozen(&key).await, 0);
    assert!(stage.usage(&key).await > 0);
}
