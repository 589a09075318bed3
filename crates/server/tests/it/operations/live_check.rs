//! `tollgate check --live`: asks the upstreams, the store and the media storage whether they work.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::harness::{CannedUpstream, GatewayBuilder, Output, TestGateway, UPSTREAM_KEY};

const OTHER_KEY: &str = "sk-other-secret-4712";

fn answer(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn channel<'a>(checked: &'a Value, name: &str) -> &'a Value {
    let channels = checked["live"]["channels"].as_array().unwrap();
    channels.iter().find(|it| it["name"] == name).unwrap()
}

#[tokio::test]
async fn a_gateway_that_works_says_so() {
    let gateway = TestGateway::start().await;
    let checked = gateway.cli_json(&["check", "--live"]).await;
    let main = channel(&checked, "main");
    assert_eq!(main["status"], 200, "{main}");
    assert!(main["models"].as_u64().unwrap() > 0, "{main}");
    let live = &checked["live"];
    for part in ["store", "media"] {
        assert_eq!(live[part]["state"], "works", "{live}");
    }
    let message = live["store"]["message"].as_str().unwrap();
    assert!(message.contains("as it should be"), "{message}");
    // Without `--live`, nothing is asked.
    let checked = gateway.cli_json(&["check"]).await;
    assert_eq!(checked["live"], Value::Null);
}

#[tokio::test]
async fn what_differs_is_named_and_strict_fails_for_it() {
    let refusal = json!({ "error": { "message": format!("Incorrect API key: {OTHER_KEY}") } });
    let refuses = CannedUpstream::json("{}").await;
    refuses.answers(401, "application/json", &refusal.to_string());
    let garbled = CannedUpstream::json("{}").await;
    let partial = CannedUpstream::json(r#"{"data":[{"id":"a"}],"has_more":true}"#).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = nobody.local_addr().unwrap();
    drop(nobody);
    let mut entries = String::new();
    for (name, address) in [
        ("refuses", refuses.address()),
        ("garbled", garbled.address()),
        ("partial", partial.address()),
        ("closed", closed),
    ] {
        let _ = writeln!(
            entries,
            "[[channel]]\nname = '{name}'\npreset = 'openai-compatible'\nbase_url = 'http://{address}/v1'\n\
             credential = {{ file = 'other-key' }}"
        );
    }
    entries.push_str(
        "[[channel]]\nname = 'silent'\npreset = 'cohere'\nbase_url = 'http://127.0.0.1:1'\n\
         credential = { file = 'other-key' }\n\
         [[model]]\nid = 'maker/gone'\nkind = 'text'\nprice = { input = '1', output = '1' }\n\
         profile = { context_tokens = 10, max_output_tokens = 10 }\n\
         routes = [{ channel = 'main', model = 'gone-1' }, { channel = 'partial', model = 'b' }]\n",
    );
    let gateway = GatewayBuilder::default()
        .entries(&entries)
        .file("other-key", OTHER_KEY)
        .start()
        .await;

    // The configuration itself is valid, and without `--strict` the check succeeds.
    let checked = gateway.cli_json(&["check", "--live"]).await;
    assert_eq!(checked["live"]["ok"], false, "{checked}");
    let missing = channel(&checked, "main")["missing"].to_string();
    let gone = json!({ "model": "maker/gone", "upstream_model": "gone-1" }).to_string();
    assert!(missing.contains(&gone), "{missing}");
    for (name, state, words) in [
        ("main", "failed", "routes name others"),
        ("refuses", "failed", "the credential is refused"),
        ("garbled", "failed", "not with a list of models"),
        ("partial", "works", "has more"),
        ("closed", "failed", "cannot be reached"),
        ("silent", "not_tried", "have no list of models"),
    ] {
        let found = channel(&checked, name);
        assert_eq!(found["state"], state, "{found}");
        let message = found["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(channel(&checked, "partial")["missing"], json!([]));

    let strict = gateway
        .cli(&["check", "--live", "--strict", "--json"])
        .await;
    assert_eq!(strict.status.code(), Some(1));
    assert_eq!(answer(&strict)["ok"], false);
    let people = gateway.cli(&["check", "--live", "--strict"]).await;
    assert_eq!(people.status.code(), Some(1));
    let line = |words: &str| people.stdout.lines().any(|it| it.contains(words));
    assert!(line("maker/gone: no model `gone-1`"), "{}", people.stdout);
    assert!(line("channel closed"), "{}", people.stdout);
    for output in [&strict, &people] {
        for secret in [UPSTREAM_KEY, OTHER_KEY] {
            assert!(!output.stdout.contains(secret), "{}", output.stdout);
            assert!(!output.stderr.contains(secret), "{}", output.stderr);
        }
    }
}

#[tokio::test]
async fn a_store_or_a_folder_that_cannot_be_used_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "other.db",
        "this is not a database at all, but long enough to be read",
    );
    write("media", "a file where the folder should be");
    write(
        "t.toml",
        "[store]\nurl = 'sqlite:other.db'\n[media]\nurl = 'file:media'\n",
    );
    let words = ["check", "--live", "--json", "--config", "t.toml"];
    let found = answer(&crate::harness::run(&words, folder.path()).await);
    assert_eq!(found["live"]["store"]["state"], "failed", "{found}");
    assert_eq!(found["live"]["media"]["state"], "failed", "{found}");

    // A store that does not exist yet is not an error, and the check does not create it.
    write(
        "t.toml",
        "[store]\nurl = 'sqlite:d/new.db'\n[media]\nurl = 'file:d/media'\n",
    );
    let found = answer(&crate::harness::run(&words, folder.path()).await);
    assert_eq!(found["live"]["ok"], true, "{found}");
    assert_eq!(found["live"]["store"]["state"], "not_tried", "{found}");
    assert_eq!(found["live"]["media"]["state"], "not_tried", "{found}");
    assert!(!folder.path().join("d").exists());
}
