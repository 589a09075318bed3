//! `/admin/v1/config`, `/models`, `/channels` and `/presets`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, TestGateway, UPSTREAM_KEY, ask, eventually, with};

fn text_model(id: &str, channel: &str) -> Value {
    json!({
        "id": id,
        "kind": "text",
        "routes": [{ "channel": channel, "model": "sim-chat", "cost": { "input": "0.5", "output": "1" } }],
        "price": { "input": "1", "output": "2" },
        "profile": { "context_tokens": 1000, "max_output_tokens": 1000 },
    })
}

/// The configuration with one more model, routed to this channel.
fn with_model(config: &Value, id: &str, channel: &str) -> Value {
    let mut config = config.clone();
    config.as_object_mut().unwrap().remove("kept_in");
    let models = config["models"].as_array_mut().unwrap();
    models.push(text_model(id, channel));
    config
}

async fn put(admin: &AdminClient<'_>, config: &Value) -> crate::harness::Answer {
    admin.send("PUT", "/config", Some(config)).await
}

fn files(gateway: &TestGateway) -> Vec<String> {
    let folder = gateway.folder().join("credentials");
    let found = std::fs::read_dir(folder).into_iter().flatten();
    found
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn a_model_that_is_added_answers_at_once_and_after_a_restart() {
    let (mut gateway, key) = with_token(GatewayBuilder::default()).funded().await;
    let before = std::fs::read_to_string(gateway.config_file()).unwrap();
    {
        let admin = AdminClient::new(&gateway);
        let config = admin.get("/config").await;
        assert_eq!(config["kept_in"], "file");
        assert_eq!(
            config["channels"][0]["credential"],
            json!({ "file": "upstream-key" })
        );
        let new = with_model(&config, "maker/added", "main");
        let proposed = json!({ "channels": new["channels"], "models": new["models"] });
        let checked = admin.post("/config/check", &proposed).await;
        assert_eq!(checked, json!({ "problems": [] }));
        let answer = put(&admin, &new).await.ok().json();
        assert_ne!(answer["version"], config["version"]);
        assert_eq!(answer, admin.get("/config").await);
        // A second change based on the same version is refused.
        let late = put(&admin, &with_model(&config, "maker/late", "main")).await;
        assert_eq!(assert_refused(&late, 409, "version_conflict"), "version");
    }
    let body = with(ask("count to 3"), &json!({ "model": "maker/added" }));
    gateway.chat(&key, &body).await.ok();
    let after = std::fs::read_to_string(gateway.config_file()).unwrap();
    assert!(after.starts_with(before.trim_end()), "{after}");
    gateway.kill();
    gateway.restart().await;
    gateway.chat(&key, &body).await.ok();
    let rows = AdminClient::new(&gateway)
        .get("/audit?action=config.replace")
        .await;
    assert_eq!(rows["data"].as_array().unwrap().len(), 1);
    let row = &rows["data"][0];
    assert_eq!(row["after"]["models"][0]["id"], "maker/added", "{row}");
    assert_eq!(row["before"], json!({ "channels": [], "models": [] }));
}

#[tokio::test]
async fn entries_with_problems_change_nothing_and_all_are_told() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let config = admin.get("/config").await;
    let text = std::fs::read_to_string(gateway.config_file()).unwrap();
    let mut new = with_model(&config, "maker/added", "nowhere");
    new["models"][0]["kind"] = json!("poem");
    new["channels"][0]["colour"] = json!("red");
    let proposed = json!({ "channels": new["channels"], "models": new["models"] });
    let problems = admin.post("/config/check", &proposed).await["problems"].clone();
    let messages: Vec<&str> = problems
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    for place in [
        "channel[0].colour",
        "model[0].kind",
        "model[3].routes[0].channel",
    ] {
        assert!(
            messages.iter().any(|it| it.starts_with(place)),
            "{place} in {messages:?}"
        );
    }
    let refused = put(&admin, &new).await;
    assert_eq!(
        assert_refused(&refused, 400, "invalid_request"),
        "channel[0].colour"
    );
    for body in [
        json!({ "version": 1 }),
        json!({ "version": "x", "channels": [], "models": [] }),
        json!({ "channels": [1], "models": [] }),
    ] {
        assert_refused(&put(&admin, &body).await, 400, "invalid_request");
    }
    assert_eq!(
        std::fs::read_to_string(gateway.config_file()).unwrap(),
        text
    );
    assert_eq!(admin.get("/config").await, config);
    assert!(
        admin.get("/audit?action=config.replace").await["data"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn of_two_that_replace_the_same_version_one_is_told_so() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let config = admin.get("/config").await;
    let (one, two) = (
        with_model(&config, "maker/one", "main"),
        with_model(&config, "maker/two", "main"),
    );
    let (first, second) = tokio::join!(put(&admin, &one), put(&admin, &two));
    let mut statuses = [first.status(), second.status()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    let models = admin.get("/config").await["models"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(models, config["models"].as_array().unwrap().len() + 1);
}

#[tokio::test]
async fn a_pasted_credential_is_kept_in_a_private_file_and_never_shown() {
    const SECRET: &str = "sk-pasted-secret-0815";
    let (gateway, key) = with_token(GatewayBuilder::default()).funded().await;
    let admin = AdminClient::new(&gateway);
    let mut new = with_model(&admin.get("/config").await, "maker/added", "second");
    let base_url = new["channels"][0]["base_url"].clone();
    let second =
        json!({ "name": "second", "preset": "sim", "base_url": base_url, "credential": SECRET });
    new["channels"].as_array_mut().unwrap().push(second);
    let answer = put(&admin, &new).await.ok();
    assert!(!answer.text().contains(SECRET));
    let named = answer.json()["channels"][1]["credential"]["file"].clone();
    let file = gateway.folder().join(named.as_str().unwrap());
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), SECRET);
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let body = with(ask("count to 3"), &json!({ "model": "maker/added" }));
    gateway.chat(&key, &body).await.ok();
    // A new credential replaces the file. A change without a credential keeps it.
    let mut again = answer.json();
    again.as_object_mut().unwrap().remove("kept_in");
    again["channels"][1]["credential"] = json!("sk-other");
    let mut third = put(&admin, &again).await.ok().json();
    assert_eq!(files(&gateway).len(), 1);
    third.as_object_mut().unwrap().remove("kept_in");
    third["channels"][1]
        .as_object_mut()
        .unwrap()
        .remove("credential");
    third["models"][0]["enabled"] = json!(false);
    put(&admin, &third).await.ok();
    assert_eq!(files(&gateway).len(), 1);
    // A refused change leaves no file.
    third["channels"][1]["credential"] = json!("sk-refused");
    assert_refused(&put(&admin, &third).await, 409, "version_conflict");
    assert_eq!(files(&gateway).len(), 1);
    for path in [
        "/config",
        "/audit?limit=500",
        "/channels",
        "/models",
        "/presets",
    ] {
        let text = admin.get(path).await.to_string();
        for secret in [SECRET, "sk-other", "sk-refused", UPSTREAM_KEY] {
            assert!(!text.contains(secret), "{path}");
        }
    }
    assert!(
        !std::fs::read_to_string(gateway.config_file())
            .unwrap()
            .contains("sk-")
    );
    assert!(
        !gateway
            .log()
            .iter()
            .any(|line| line.contains("sk-pasted") || line.contains("sk-other"))
    );
}

#[tokio::test]
async fn models_and_channels_say_why_they_cannot_be_used() {
    let builder = with_token(GatewayBuilder::default()).entries(
        r#"
[[channel]]
name = "keyless"
preset = "openai"
credential = { env = "NO_SUCH_VARIABLE_OF_ANY_TEST" }
[[model]]
id = "maker/dark"
kind = "text"
routes = [{ channel = "keyless", model = "x" }]
price = { input = "1", output = "2" }
profile = { max_output_tokens = 10 }
"#,
    );
    let (gateway, key) = builder.funded().await;
    let admin = AdminClient::new(&gateway);
    gateway.chat(&key, &ask("count to 3")).await.ok();
    let models = admin.get("/models").await;
    let models = models["data"].as_array().unwrap();
    let of = |id: &str| models.iter().find(|it| it["id"] == id).unwrap();
    assert_eq!(
        (&of("maker/chat")["callable"], &of("maker/chat")["reason"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(of("maker/chat")["price"]["output"], "10");
    assert_eq!(of("maker/dark")["callable"], false);
    assert!(
        of("maker/dark")["reason"]
            .as_str()
            .unwrap()
            .contains("NO_SUCH_VARIABLE"),
        "{models:?}"
    );
    assert_eq!(of("maker/dark")["routes"][0]["usable"], false);
    let channels = admin.get("/channels").await;
    let [main, keyless] = &channels["data"].as_array().unwrap()[..] else {
        panic!("{channels}");
    };
    assert_eq!(
        (&main["state"], &main["breaker"], &main["models"]),
        (&json!("up"), &json!("closed"), &json!(3))
    );
    assert_eq!(main["last_hour"], json!({ "requests": 1, "errors": 0 }));
    assert_eq!(main["minutes"].as_array().unwrap().len(), 60);
    assert_eq!(
        (&keyless["state"], &keyless["breaker"]),
        (&json!("off"), &Value::Null)
    );
    let presets = admin.get("/presets").await;
    assert!(
        presets["data"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["name"] == "openai")
    );
}

#[tokio::test]
async fn a_probe_calls_the_upstream_once_and_charges_nobody() {
    let (gateway, key) = with_token(GatewayBuilder::default()).funded().await;
    let admin = AdminClient::new(&gateway);
    let probe = admin.post("/channels/main/probe", &json!({})).await;
    assert_eq!(
        (&probe["ok"], &probe["status"]),
        (&json!(true), &json!(200)),
        "{probe}"
    );
    assert_eq!(gateway.upstream_calls(), 1);
    assert_eq!(gateway.usage(&key).await, 0);
    gateway.sim.queue_faults("*", "status=503", 1).unwrap();
    let probe = admin.post("/channels/main/probe", &json!({})).await;
    assert_eq!(
        (&probe["ok"], &probe["status"]),
        (&json!(false), &json!(503)),
        "{probe}"
    );
    let channels = admin.get("/channels").await;
    assert_eq!(
        channels["data"][0]["errors_by_kind"],
        json!({ "failed": 1 })
    );
    assert_refused(
        &admin.send("POST", "/channels/none/probe", None).await,
        404,
        "not_found",
    );
    let rows = admin.get("/audit?action=channel.probe").await;
    assert_eq!(rows["data"].as_array().unwrap().len(), 2);
    assert_eq!(rows["data"][0]["target"], "main");
    gateway.verify().await;
}

/// Two nodes that share a database use the same catalog. After the first change, the catalog in the file no longer
/// counts.
#[tokio::test]
async fn nodes_that_keep_their_catalog_in_the_store_converge() {
    let builder = with_token(GatewayBuilder::default()).setting("admin", "config = \"store\"");
    let (mut gateway, key) = builder.funded().await;
    let text = std::fs::read_to_string(gateway.config_file()).unwrap();
    let config = AdminClient::new(&gateway).get("/config").await;
    assert_eq!(
        (&config["kept_in"], &config["version"]),
        (&json!("store"), &json!(0))
    );
    let body = with(ask("count to 3"), &json!({ "model": "maker/added" }));
    if gateway.database().is_shared() {
        let second = gateway.another_node().await;
        let new = with_model(&config, "maker/added", "main");
        assert_eq!(
            put(&AdminClient::new(&gateway), &new).await.ok().json()["version"],
            1
        );
        eventually("the other node has the model", async || {
            let mut connection = crate::harness::Connection::open(second).await;
            let request = crate::harness::Request::chat(&body).bearer(&key.secret);
            connection.send(&request).await;
            (connection.answer().await.status() == 200).then_some(())
        })
        .await;
    } else {
        let new = with_model(&config, "maker/added", "main");
        assert_eq!(
            put(&AdminClient::new(&gateway), &new).await.ok().json()["version"],
            1
        );
    }
    let late = put(
        &AdminClient::new(&gateway),
        &with_model(&config, "maker/late", "main"),
    )
    .await;
    assert_refused(&late, 409, "version_conflict");
    // A pasted secret would be stored on one node only, so it is refused.
    let mut pasted = AdminClient::new(&gateway).get("/config").await;
    pasted.as_object_mut().unwrap().remove("kept_in");
    pasted["channels"][0]["credential"] = json!("sk-pasted");
    assert_refused(
        &put(&AdminClient::new(&gateway), &pasted).await,
        400,
        "invalid_request",
    );
    gateway.chat(&key, &body).await.ok();
    gateway.kill();
    gateway.restart().await;
    gateway.chat(&key, &body).await.ok();
    assert_eq!(
        std::fs::read_to_string(gateway.config_file()).unwrap(),
        text
    );
}

/// K16: the token of an owner gives no access to the machine's environment or files.
#[tokio::test]
async fn only_credentials_of_upstreams_can_be_named() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let mut config = admin.get("/config").await;
    config.as_object_mut().unwrap().remove("kept_in");
    let pipe = gateway.folder().join("credentials/pipe");
    std::fs::create_dir(gateway.folder().join("credentials")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for (credential, rule) in [
        (json!({ "env": "PATH" }), "_API_KEY"),
        (json!({ "file": "/etc/hostname" }), "`credentials`"),
        (json!({ "file": "admin-token" }), "`credentials`"),
        (json!({ "file": "credentials/pipe" }), "regular file"),
    ] {
        config["channels"][0]["credential"] = credential;
        let refused = put(&admin, &config).await;
        let param = assert_refused(&refused, 400, "invalid_request");
        assert_eq!(param, "channel[0].credential");
        assert!(refused.text().contains(rule), "{}", refused.text());
        let proposed = json!({ "channels": config["channels"], "models": config["models"] });
        let checked = admin.post("/config/check", &proposed).await;
        let problem = checked["problems"][0].as_str().unwrap();
        assert!(problem.contains(rule), "{checked}");
    }
    // The policy allows the file that the configuration already names, and files in the `credentials` folder.
    std::fs::write(gateway.folder().join("credentials/main"), UPSTREAM_KEY).unwrap();
    for file in ["upstream-key", "credentials/main"] {
        config["channels"][0]["credential"] = json!({ "file": file });
        config["version"] = admin.get("/config").await["version"].clone();
        put(&admin, &config).await.ok();
    }
}
