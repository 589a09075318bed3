//! `/admin/v1/channels/discover` and `/try`: an upstream account before it is saved.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{CannedUpstream, GatewayBuilder, TestGateway};

/// The upstream key that an owner types into the form.
const TYPED: &str = "sk-typed-into-the-form-4711";

/// The test gateway's upstream, proposed as a second channel.
async fn proposed(admin: &AdminClient<'_>) -> Value {
    let config = admin.get("/config").await;
    let base_url = config["channels"][0]["base_url"].clone();
    json!({ "name": "second", "preset": "sim", "base_url": base_url, "credential": TYPED })
}

/// Checks that the typed key is in no log line, in no row of the audit, and in no file of the gateway. With `SQLite`,
/// these files include the database.
async fn assert_not_kept(gateway: &TestGateway, admin: &AdminClient<'_>) {
    let log = gateway.log().join("\n");
    assert!(!log.contains(TYPED), "{log}");
    let audit = admin.get("/audit").await.to_string();
    assert!(!audit.contains(TYPED), "{audit}");
    let mut folders = vec![gateway.folder().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let found = memchr::memmem::find(&bytes, TYPED.as_bytes());
            assert_eq!(found, None, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn an_account_tells_its_models_and_what_is_known_of_them() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let proposed = proposed(&admin).await;
    let answer = admin.post("/channels/discover", &proposed).await;
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(answer["status"], 200);
    assert_eq!(answer["complete"], true);
    let models = answer["data"].as_array().unwrap();
    let named = |name: &str| models.iter().find(|it| it["id"] == name).unwrap();
    // A model that is already routed to this upstream is listed with its price.
    let known = named("sim-embed");
    assert_eq!(known["configured"], true);
    assert_eq!(known["source"], "configuration");
    assert_eq!(known["entry"]["id"], "maker/vectors");
    assert_eq!(known["entry"]["price"], json!({ "input": "0.1" }));
    assert!(known["entry"].get("routes").is_none());
    let new = named("sim-mini");
    assert_eq!(new["configured"], false);
    assert_eq!(new["source"], Value::Null);
    assert_eq!(
        new["entry"],
        json!({ "id": "second/sim-mini", "kind": "text" })
    );
    let row = admin.get("/audit?action=channel.discover").await["data"][0].clone();
    assert_eq!(row["target"], "second", "{row}");
    assert_eq!(row["after"]["base_url"], proposed["base_url"], "{row}");
    assert_not_kept(&gateway, &admin).await;
}

#[tokio::test]
async fn a_call_is_tried_without_money_and_without_a_row_of_the_journal() {
    let (gateway, key) = with_token(GatewayBuilder::default()).funded().await;
    let admin = AdminClient::new(&gateway);
    let channel = proposed(&admin).await;
    for (model, kind, dialect) in [
        ("sim-chat", "text", Value::Null),
        ("sim-chat", "text", json!("messages")),
        ("sim-embed", "embedding", Value::Null),
    ] {
        let trial = json!({ "channel": channel, "model": model, "kind": kind, "dialect": dialect });
        let answer = admin.post("/channels/try", &trial).await;
        assert_eq!(answer["ok"], true, "{model}: {answer}");
        assert_eq!(answer["status"], 200, "{model}: {answer}");
    }
    let trial = json!({ "channel": channel, "model": "missing-model" });
    let answer = admin.post("/channels/try", &trial).await;
    assert_eq!(answer["ok"], false, "{answer}");
    assert_eq!(answer["status"], 404, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("missing-model"), "{message}");
    assert_eq!(gateway.usage(&key).await, 0);
    assert_eq!(admin.get("/calls").await["data"], json!([]));
    let rows = admin.get("/audit?action=channel.try").await;
    let rows = rows["data"].as_array().unwrap().iter().rev();
    let models: Vec<_> = rows.map(|row| &row["after"]["model"]).collect();
    assert_eq!(
        models,
        ["sim-chat", "sim-chat", "sim-embed", "missing-model"]
    );
    assert_not_kept(&gateway, &admin).await;
    gateway.verify().await;
}

#[tokio::test]
async fn a_refused_key_and_an_answer_that_is_no_list_are_told_plainly() {
    let upstream = CannedUpstream::json("{}").await;
    let builder =
        with_token(GatewayBuilder::default()).setting("outbound", "allow = [\"127.0.0.1\"]");
    let gateway = builder.start().await;
    let admin = AdminClient::new(&gateway);
    let base_url = format!("http://{}/v1", upstream.address());
    let channel = json!({ "preset": "openai", "base_url": base_url, "credential": TYPED });
    let answer = admin.post("/channels/discover", &channel).await;
    assert_eq!(answer["ok"], false, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("not with a list of models"), "{message}");
    // Vendors repeat the refused key in their error message.
    let refusal = json!({ "error": { "message": format!("Incorrect API key provided: {TYPED}") } });
    upstream.answers(401, "application/json", &refusal.to_string());
    let answer = admin.post("/channels/discover", &channel).await;
    assert_eq!(answer["status"], 401, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(
        message.contains("Incorrect API key provided: ***"),
        "{message}"
    );
    let trial = json!({ "channel": channel, "model": "large" });
    let answer = admin.post("/channels/try", &trial).await;
    assert_eq!(
        (&answer["ok"], &answer["status"]),
        (&json!(false), &json!(401))
    );
    drop(upstream);
    let answer = admin.post("/channels/discover", &channel).await;
    assert_eq!(answer["ok"], false, "{answer}");
    assert_eq!(answer["status"], Value::Null, "{answer}");
    assert_not_kept(&gateway, &admin).await;
}

#[tokio::test]
async fn an_address_that_is_not_public_is_not_called() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let private = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = private.local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let base_url = format!("http://{host}:{port}/v1");
        let channel = json!({ "preset": "openai", "base_url": base_url, "credential": TYPED });
        let trial = json!({ "channel": channel, "model": "large" });
        for answer in [
            admin.post("/channels/discover", &channel).await,
            admin.post("/channels/try", &trial).await,
        ] {
            assert_eq!(answer["ok"], false, "{host}: {answer}");
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains("outbound.allow"), "{host}: {message}");
        }
        // The known models can be saved without the vendor's list.
        let answer = admin.post("/channels/discover", &channel).await;
        let models = answer["data"].as_array().unwrap();
        assert!(!models.is_empty() && models.iter().all(|it| it["by_id"] == true));
        assert!(models.iter().any(|it| it["dialect"] == "responses"));
    }
    // The first connection that the listener accepts is the test's own, so the gateway has not connected.
    let ours = tokio::net::TcpStream::connect(("127.0.0.1", port));
    let (ours, accepted) = tokio::join!(ours, private.accept());
    assert_eq!(accepted.unwrap().1, ours.unwrap().local_addr().unwrap());
}

/// The gateway refuses to be its own upstream, even where `outbound.allow` permits the address.
#[tokio::test]
async fn the_gateway_itself_is_no_channel() {
    let builder = with_token(GatewayBuilder::default());
    let builder = builder.setting("outbound", "allow = [\"127.0.0.0/8\", \"::1/128\"]");
    let gateway = builder.start().await;
    let admin = AdminClient::new(&gateway);
    let channel = |host: &str, port: u16| {
        let base_url = format!("http://{host}:{port}/v1");
        json!({ "preset": "openai", "base_url": base_url, "credential": TYPED })
    };
    // The base URL is the address of the public listener.
    let own = channel("127.0.0.1", gateway.address().port());
    let answer = admin.send("POST", "/channels/discover", Some(&own)).await;
    assert_eq!(assert_refused(&answer, 400, "invalid_request"), "base_url");
    // The base URL uses another name of the host, or the admin listener.
    for (host, address) in [
        ("localhost", gateway.address()),
        ("127.0.0.1", gateway.admin()),
        ("localhost", gateway.admin()),
    ] {
        let channel = channel(host, address.port());
        let trial = json!({ "channel": channel, "model": "large" });
        for answer in [
            admin.post("/channels/discover", &channel).await,
            admin.post("/channels/try", &trial).await,
        ] {
            assert_eq!(answer["ok"], false, "{host}: {answer}");
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains("this gateway"), "{host}: {message}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_a_channel_is_refused_at_its_member() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let vendor = json!({ "preset": "openai", "credential": TYPED });
    for (change, param) in [
        (json!({ "preset": "nobody" }), json!("preset")),
        (json!({ "credential": null }), json!("credential")),
        (json!({ "credential": " " }), json!("credential")),
        (json!({ "credential": "two\nlines" }), json!("credential")),
        (
            json!({ "credential": "x".repeat(9000) }),
            json!("credential"),
        ),
        (json!({ "base_url": "ftp://x" }), json!("base_url")),
        (json!({ "preset": "openai-compatible" }), json!("base_url")),
        (json!({ "name": "a b" }), json!("name")),
        (json!({ "protocols": [] }), json!("protocols")),
        (json!({ "protocols": ["speech"] }), json!("protocols")),
    ] {
        let mut channel = vendor.clone();
        let members = channel.as_object_mut().unwrap();
        members.extend(change.as_object().unwrap().clone());
        let answer = admin
            .send("POST", "/channels/discover", Some(&channel))
            .await;
        assert_eq!(assert_refused(&answer, 400, "invalid_request"), param);
        let trial = json!({ "channel": channel, "model": "large" });
        let answer = admin.send("POST", "/channels/try", Some(&trial)).await;
        let place = format!("channel.{}", param.as_str().unwrap());
        assert_eq!(assert_refused(&answer, 400, "invalid_request"), place);
    }
    for (trial, param) in [
        (json!({ "channel": vendor, "model": "" }), json!("model")),
        (
            json!({ "channel": vendor, "model": "m", "kind": "video" }),
            json!("kind"),
        ),
        (
            json!({ "channel": vendor, "model": "m", "dialect": "latin" }),
            json!("dialect"),
        ),
    ] {
        let answer = admin.send("POST", "/channels/try", Some(&trial)).await;
        assert_eq!(assert_refused(&answer, 400, "invalid_request"), param);
    }
    let body = json!({ "name": "hands", "role": "operator" });
    let made = admin.post("/tokens", &body).await;
    let operator = AdminClient::with_token(&gateway, made["secret"].as_str().unwrap());
    let answer = operator
        .send("POST", "/channels/discover", Some(&vendor))
        .await;
    assert_refused(&answer, 403, "role_not_sufficient");
    assert_eq!(gateway.upstream_calls(), 0);
}
