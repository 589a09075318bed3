//! `/admin/v1/keys`: create, show, change and rotate keys.

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, Key, Request, TestGateway, ask, eventually, micro};

async fn gateway() -> TestGateway {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    gateway.wallet("w", &["--balance", "100"]).await;
    gateway
}

fn key_of(made: &Value) -> Key {
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    Key {
        id: text("id"),
        secret: text("secret"),
    }
}

#[tokio::test]
async fn a_key_is_created_used_changed_and_disabled() {
    let gateway = gateway().await;
    let admin = AdminClient::new(&gateway);
    let answer = admin
        .send(
            "POST",
            "/keys",
            Some(&json!({
                "wallet": "w",
                "name": "checkout",
                "limit": "20",
                "window": {"amount": "5.5", "per": "week", "time_zone": "Europe/Berlin"},
                "rpm": 1000,
                "tpm": 1_000_000,
                "concurrency": 10,
                "expires_at": 4_000_000_000_000_i64,
                "models": ["maker/*"],
                "tags": ["prod", "eu"],
            })),
        )
        .await;
    assert_eq!(answer.status(), 201);
    let made = answer.json();
    let key = key_of(&made);
    assert!(made["window"]["resets_at"].as_i64() > made["created_at"].as_i64());
    assert!(key.secret.starts_with(made["prefix"].as_str().unwrap()));
    gateway.chat(&key, &ask("hello")).await.ok();

    let path = format!("/keys/{}", key.id);
    // The admin API reads committed data only, and the charge may be committed after the call's answer.
    let shown = eventually("the charge", async || {
        let shown = admin.get(&path).await;
        (micro(&shown["window"], "used") > 0).then_some(shown)
    })
    .await;
    assert!(shown.get("secret").is_none());
    // The command line shows the same.
    assert_eq!(shown, gateway.cli_json(&["key", "show", &key.id]).await);
    let used = micro(&shown["window"], "used");
    assert!(used > 0 && shown["last_used_at"].is_i64());
    for (member, expected) in [
        ("name", json!("checkout")),
        ("wallet_name", json!("w")),
        ("limit", json!("20")),
        (
            "limit_remaining_micro",
            json!((5_500_000 - used).to_string()),
        ),
        ("models", json!(["maker/*"])),
        ("tags", json!(["prod", "eu"])),
        ("rpm_limit", json!(1000)),
        ("expires_at", json!(4_000_000_000_000_i64)),
        ("old_secret_until", Value::Null),
    ] {
        assert_eq!(shown[member], expected, "{member}");
    }

    // `null` removes a limit; an absent member keeps its value.
    let change = async |body: Value| admin.send("PATCH", &path, Some(&body)).await;
    let lifted = json!({"limit": null, "window": null, "rpm": null, "tpm": null, "concurrency": null,
        "expires_at": null, "models": null, "tags": null, "name": null});
    let changed = change(lifted).await.ok().json();
    for member in [
        "limit",
        "window",
        "rpm_limit",
        "tpm_limit",
        "concurrency_limit",
        "expires_at",
        "name",
    ] {
        assert_eq!(changed[member], Value::Null, "{member}");
    }
    assert_eq!(
        (&changed["models"], &changed["tags"]),
        (&json!([]), &json!([]))
    );
    let changed = change(json!({"limit": "0"})).await.ok().json();
    assert_eq!(
        (&changed["limit"], &changed["enabled"]),
        (&json!("0"), &json!(true))
    );
    let refused = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(refused.failure(), (402, "key_limit_reached".to_owned()));
    let changed = change(json!({"enabled": false, "limit": null}))
        .await
        .ok()
        .json();
    assert_eq!(changed["enabled"], false);
    assert_eq!(gateway.chat(&key, &ask("hello")).await.status(), 401);
    assert_eq!(change(json!({})).await.ok().json(), changed);

    // Each change leaves an audit row; a request that changes nothing leaves none.
    let audit = admin.get(&format!("/audit?target={}", key.id)).await;
    let actions = audit["data"].as_array().unwrap().iter();
    let actions: Vec<_> = actions.map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(
        actions,
        ["key.update", "key.update", "key.update", "key.create"]
    );
    let before = &audit["data"][2]["before"];
    assert_eq!(before["window"]["time_zone"], "Europe/Berlin");
    assert!(!audit.to_string().contains(&key.secret));
    gateway.verify().await;
}

#[tokio::test]
async fn a_rotation_answers_the_new_secret_once() {
    let gateway = gateway().await;
    let admin = AdminClient::new(&gateway);
    let old = key_of(&admin.post("/keys", &json!({"wallet": "w"})).await);
    let path = format!("/keys/{}/rotate", old.id);
    let made = admin.post(&path, &json!({"overlap_seconds": 3600})).await;
    let new = key_of(&made);
    assert!(made["old_secret_until"].as_i64().unwrap() > made["created_at"].as_i64().unwrap());
    for key in [&old, &new] {
        gateway.chat(key, &ask("hello")).await.ok();
    }
    // Without a body, the old secret expires immediately.
    let answer = admin.send("POST", &path, None).await.ok().json();
    let newest = key_of(&answer);
    assert_eq!(answer["old_secret_until"], Value::Null);
    assert_ne!(newest.secret, new.secret);
    gateway.chat(&newest, &ask("hello")).await.ok();
    for (body, param) in [
        (json!({"overlap_seconds": -1}), "overlap_seconds"),
        (json!({"overlap_seconds": 40_000_000}), "overlap_seconds"),
        (json!({"overlap": 5}), "overlap"),
    ] {
        let answer = admin.send("POST", &path, Some(&body)).await;
        assert_eq!(
            assert_refused(&answer, 400, "invalid_request"),
            param,
            "{body}"
        );
    }
    // A body without a content type is refused, not ignored.
    let untyped = Request::post(&format!("/admin/v1{path}")).body(r#"{"overlap_seconds":3600}"#);
    let answer = admin.send_as_is(untyped).await;
    assert_eq!(
        assert_refused(&answer, 400, "invalid_request"),
        "content-type"
    );
    gateway.chat(&newest, &ask("hello")).await.ok();
    let nobody = admin
        .send("POST", "/keys/key_0000000000000000/rotate", None)
        .await;
    assert_refused(&nobody, 404, "not_found");
}

#[tokio::test]
async fn keys_are_searched_a_page_at_a_time() {
    let gateway = gateway().await;
    gateway.wallet("other", &[]).await;
    let admin = AdminClient::new(&gateway);
    for (wallet, name, tag) in [
        ("w", "one", "a"),
        ("w", "two", "b"),
        ("other", "three", "a"),
    ] {
        let body = json!({"wallet": wallet, "name": name, "tags": [tag]});
        admin.post("/keys", &body).await;
    }
    let names = |page: &Value| -> Vec<String> {
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    };
    for (query, expected) in [
        ("", &["three", "two", "one"][..]),
        ("q=T", &["three", "two"]),
        ("q=other", &["three"]),
        ("tag=a", &["three", "one"]),
        ("wallet=w", &["two", "one"]),
        ("wallet=w&tag=a", &["one"]),
        ("q=%25", &[]),
    ] {
        let page = admin.get(&format!("/keys?{query}")).await;
        assert_eq!(names(&page), expected, "{query}");
        assert_eq!(page["next_cursor"], Value::Null, "{query}");
    }
    let first = admin.get("/keys?limit=2").await;
    assert_eq!(names(&first), ["three", "two"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = admin.get(&format!("/keys?limit=2&cursor={cursor}")).await;
    assert_eq!(names(&second), ["one"]);
    assert_eq!(second["next_cursor"], Value::Null);
    for (query, param) in [
        ("limit=0", "limit"),
        ("cursor=ImtleV8i", "cursor"),
        ("colour=red", "colour"),
        ("wallet=nobody", "wallet"),
    ] {
        let answer = admin.send("GET", &format!("/keys?{query}"), None).await;
        assert_eq!(
            assert_refused(&answer, 400, "invalid_request"),
            param,
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_key_that_makes_no_sense_is_refused() {
    let gateway = gateway().await;
    let admin = AdminClient::new(&gateway);
    let made = admin.post("/keys", &json!({"wallet": "w"})).await;
    let path = format!("/keys/{}", made["id"].as_str().unwrap());
    let window = |amount: Value, per: &str, zone: &str| json!({"amount": amount, "per": per, "time_zone": zone});
    for (member, value, param) in [
        ("limit", json!("-1"), "limit"),
        ("limit", json!(5), "limit"),
        ("limit", json!("five"), "limit"),
        ("window", window(json!("-1"), "day", "UTC"), "window.amount"),
        ("window", window(json!("1"), "year", "UTC"), "window.per"),
        (
            "window",
            window(json!("1"), "day", "Mars/Base"),
            "window.time_zone",
        ),
        ("window", json!({"per": "day"}), "window"),
        ("rpm", json!(0), "rpm"),
        ("tpm", json!(-1), "tpm"),
        ("concurrency", json!(5_000_000_000_i64), "concurrency"),
        ("models", json!(["chat"]), "models"),
        ("models", json!("maker/*"), "models"),
        ("colour", json!("red"), "colour"),
    ] {
        let answer = admin
            .send("PATCH", &path, Some(&json!({member: value})))
            .await;
        let found = assert_refused(&answer, 400, "invalid_request");
        assert_eq!(found, param, "{member}: {value}");
        let body = json!({"wallet": "w", member: value});
        let answer = admin.send("POST", "/keys", Some(&body)).await;
        assert_eq!(
            assert_refused(&answer, 400, "invalid_request"),
            param,
            "{body}"
        );
    }
    for (member, value) in [
        ("name", json!("")),
        ("tags", json!(["a\nb"])),
        ("tags", json!([""])),
    ] {
        let answer = admin
            .send("PATCH", &path, Some(&json!({member: value})))
            .await;
        assert_refused(&answer, 400, "invalid_request");
    }
    let answer = admin
        .send("POST", "/keys", Some(&json!({"wallet": "nobody"})))
        .await;
    assert_eq!(assert_refused(&answer, 404, "not_found"), "wallet");
    let answer = admin.send("POST", "/keys", Some(&json!({}))).await;
    assert_refused(&answer, 400, "invalid_request");
    for id in ["key_0000000000000000", "nonsense", "key_"] {
        for (method, body) in [("GET", None), ("PATCH", Some(json!({"enabled": true})))] {
            let answer = admin
                .send(method, &format!("/keys/{id}"), body.as_ref())
                .await;
            assert_refused(&answer, 404, "not_found");
        }
    }
    let huge = Request::post("/admin/v1/keys").json(&json!({"wallet": "w".repeat(2_000_000)}));
    assert_refused(&admin.send_as_is(huge).await, 413, "request_too_large");
    let nobody = AdminClient::without_token(&gateway)
        .send("GET", "/keys", None)
        .await;
    assert_refused(&nobody, 401, "invalid_admin_token");
    assert_eq!(
        admin.get("/keys").await["data"].as_array().unwrap().len(),
        1
    );
}
