//! Keys from the operator's view: spending windows, rotation, tags and search.

use serde_json::{Value, json};

use crate::harness::{Key, TestGateway, ask, eventually, micro};

fn names(list: &Value) -> Vec<&str> {
    let keys = list.as_array().unwrap().iter();
    keys.map(|key| key["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_window_limits_what_a_key_spends() {
    let (gateway, _) = TestGateway::funded().await;
    let key = gateway
        .key("w", &["--window", "50/month", "--time-zone", "asia/tokyo"])
        .await;
    gateway.chat(&key, &ask("hello")).await.ok();
    // `/v1/balance` returns durable state, so commands see the charge too.
    let usage = gateway.usage(&key).await;
    let shown = gateway.cli_json(&["key", "show", &key.id]).await;
    let window = &shown["window"];
    assert_eq!(
        (&window["per"], &window["time_zone"]),
        (&json!("month"), &json!("Asia/Tokyo"))
    );
    assert_eq!(window["amount"], "50");
    let used = micro(window, "used");
    assert!(used > 0);
    assert_eq!(used, usage);
    assert!(window["resets_at"].as_i64().unwrap() > shown["created_at"].as_i64().unwrap());
    assert!(shown["last_used_at"].as_i64().unwrap() >= shown["created_at"].as_i64().unwrap());

    // The balance has its documented shape and shows the smaller of the remaining limits.
    let balance = gateway.balance(&key).await;
    assert!(balance["key"].get("window").is_none());
    assert_eq!(balance["key"]["limit"], Value::Null);
    assert_eq!(micro(&balance["key"], "limit_remaining"), 50_000_000 - used);
    assert_eq!(micro(&balance, "available"), 50_000_000 - used);
    let update = ["key", "update", &key.id, "--limit", "20"];
    gateway.cli_json(&update).await;
    let balance = gateway.balance(&key).await;
    assert_eq!(micro(&balance["key"], "limit_remaining"), 20_000_000 - used);

    // A smaller amount applies to the current month.
    let update = [
        "key", "update", &key.id, "--limit", "none", "--window", "0/month",
    ];
    let update = [&update[..], &["--time-zone", "Asia/Tokyo"]].concat();
    gateway.cli_json(&update).await;
    let refused = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(refused.failure(), (402, "key_limit_reached".to_owned()));
    let balance = gateway.balance(&key).await;
    assert_eq!(micro(&balance, "available"), 0);
    let update = ["key", "update", &key.id, "--window", "none"];
    assert_eq!(gateway.cli_json(&update).await["window"], Value::Null);
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.verify().await;

    for (option, value) in [
        ("--window", "10/year"),
        ("--window", "ten/day"),
        ("--time-zone", "UTC"),
    ] {
        let output = gateway
            .cli(&["key", "update", &key.id, option, value])
            .await;
        assert!(!output.status.success(), "{option} {value}");
    }
    let nowhere = [
        "key",
        "update",
        &key.id,
        "--window",
        "1/day",
        "--time-zone",
        "Mars/Base",
    ];
    let output = gateway.cli(&nowhere).await;
    assert!(
        output.stderr.contains("no time zone `Mars/Base`"),
        "{}",
        output.stderr
    );
}

/// K13: after a rotation, the old secret works until its set time.
#[tokio::test]
async fn a_rotated_secret_ends_at_its_time() {
    let (gateway, old) = TestGateway::funded().await;
    gateway.chat(&old, &ask("hello")).await.ok();
    let rotate = async |options: &[&str]| -> (Key, Value) {
        let arguments = [&["key", "rotate", &old.id], options].concat();
        let made = gateway.cli_json(&arguments).await;
        let secret = made["secret"].as_str().unwrap().to_owned();
        assert!(secret.starts_with(made["prefix"].as_str().unwrap()));
        let id = old.id.clone();
        (Key { id, secret }, made)
    };
    let (new, made) = rotate(&["--overlap", "1h"]).await;
    assert_ne!(new.secret, old.secret);
    let until = made["old_secret_until"].as_i64().unwrap();
    assert!(until > made["created_at"].as_i64().unwrap());
    // Both secrets belong to the same key.
    for secret in [&new, &old] {
        gateway.chat(secret, &ask("hello")).await.ok();
    }
    assert_eq!(gateway.usage(&new).await, gateway.usage(&old).await);

    // After the overlap, the old secret is refused even where it is cached, and the new one still works.
    gateway
        .database()
        .run("UPDATE keys SET old_secret_until = 1");
    let ended =
        async |key: &Key| (gateway.chat(key, &ask("hello")).await.status() == 401).then_some(());
    eventually("the end of the old secret", async || ended(&old).await).await;
    gateway.chat(&new, &ask("hello")).await.ok();
    let shown = gateway.cli_json(&["key", "show", &old.id]).await;
    assert_eq!(shown["old_secret_until"], Value::Null);

    // Without an overlap the old secret expires immediately, and leaves all caches within seconds.
    let (newest, made) = rotate(&[]).await;
    assert_eq!(made["old_secret_until"], Value::Null);
    gateway.chat(&newest, &ask("hello")).await.ok();
    eventually("the end of the second secret", async || ended(&new).await).await;
    gateway.verify().await;
}

#[tokio::test]
async fn keys_are_listed_by_name_tag_and_wallet() {
    let gateway = TestGateway::start().await;
    for wallet in ["acme", "other"] {
        gateway.wallet(wallet, &[]).await;
    }
    let made = gateway
        .key(
            "acme",
            &["--name", "Checkout", "--tag", "prod", "--tag", "eu"],
        )
        .await;
    gateway
        .key("acme", &["--name", "Search", "--tag", "prod"])
        .await;
    gateway.key("other", &["--name", "checkout too"]).await;
    for (options, expected) in [
        (&[][..], &["Checkout", "Search", "checkout too"][..]),
        (&["--search", "checkout"], &["Checkout", "checkout too"]),
        (&["--search", "acme"], &["Checkout", "Search"]),
        (&["--tag", "prod"], &["Checkout", "Search"]),
        (&["--tag", "eu", "--wallet", "acme"], &["Checkout"]),
        (&["--tag", "pro"], &[]),
    ] {
        let list = gateway
            .cli_json(&[&["key", "list"], options].concat())
            .await;
        assert_eq!(names(&list), expected, "{options:?}");
    }
    let table = gateway.cli(&["key", "list", "--tag", "eu"]).await.stdout;
    assert!(table.contains("prod, eu"), "{table}");
    let update = ["key", "update", &made.id, "--tag", "none"];
    assert_eq!(gateway.cli_json(&update).await["tags"], json!([]));
}
