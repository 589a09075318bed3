//! Edge cases of the admin API: texts that databases do not accept, changes without effect, keys that have just
//! changed.

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, Key, Request, TestGateway, ask};

async fn audit_rows(admin: &AdminClient<'_>) -> usize {
    let rows = admin.get("/audit?limit=500").await;
    rows["data"].as_array().unwrap().len()
}

fn key_of(made: &Value) -> Key {
    Key {
        id: made["id"].as_str().unwrap().to_owned(),
        secret: made["secret"].as_str().unwrap().to_owned(),
    }
}

/// Creates a funded wallet `w` with a key. The node has just authenticated and cached this key.
async fn with_recognised_key(gateway: &TestGateway) -> Key {
    gateway.wallet("w", &["--balance", "5"]).await;
    let made = AdminClient::new(gateway)
        .post("/keys", &json!({"wallet": "w"}))
        .await;
    let key = key_of(&made);
    gateway.get(&key, "/v1/models").await.ok();
    key
}

#[tokio::test]
async fn nul_is_refused_in_every_text() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let wallet = admin.post("/wallets", &json!({"name": "w"})).await;
    let wallet = format!("/wallets/{}", wallet["id"].as_str().unwrap());
    let key = admin.post("/keys", &json!({"wallet": "w"})).await;
    let key = format!("/keys/{}", key["id"].as_str().unwrap());
    let nul = "a\u{0}b";
    for (method, path, body) in [
        ("POST", "/wallets", json!({"name": nul})),
        ("PATCH", wallet.as_str(), json!({"name": nul})),
        (
            "POST",
            &format!("{wallet}/entries"),
            json!({"kind": "top_up", "amount": "1", "reference": nul}),
        ),
        (
            "POST",
            &format!("{wallet}/entries"),
            json!({"kind": "top_up", "amount": "1", "reference": "r", "note": nul}),
        ),
        (
            "POST",
            &format!("{wallet}/entries"),
            json!({"kind": "refund", "amount": "1", "reference": "r", "refund_of": nul}),
        ),
        ("POST", "/keys", json!({"wallet": nul})),
        ("POST", "/keys", json!({"wallet": "w", "name": nul})),
        ("POST", "/keys", json!({"wallet": "w", "tags": [nul]})),
        ("POST", "/keys", json!({"wallet": "w", "models": [nul]})),
        ("PATCH", &key, json!({"name": nul})),
        ("POST", "/tokens", json!({"name": nul, "role": "viewer"})),
        (
            "POST",
            "/config/check",
            json!({"channels": [{"name": nul}], "models": []}),
        ),
        ("POST", "/session", json!({"token": nul})),
    ] {
        let answer = admin.send(method, path, Some(&body)).await;
        assert_refused(&answer, 400, "invalid_request");
    }
    for path in [
        "/wallets?q=%00",
        "/keys?tag=%00",
        "/keys?wallet=a%00",
        "/calls?model=%00",
        "/audit?actor=%00",
        "/search?q=%00",
    ] {
        let answer = admin.send("GET", path, None).await;
        assert_refused(&answer, 400, "invalid_request");
    }
    for path in ["/wallets/%00", "/calls/a%00b", "/tasks/%00"] {
        let answer = admin.send("GET", path, None).await;
        assert_refused(&answer, 404, "not_found");
    }
    // The backslash is escaped, so this is an ordinary text.
    let name = r"a\u0000b";
    let made = admin.post("/wallets", &json!({"name": name})).await;
    assert_eq!(made["name"], name);
}

#[tokio::test]
async fn a_body_is_an_object_and_no_list_of_its_members() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let wallet = gateway.wallet("w", &[]).await;
    let wallet = format!("/wallets/{}", wallet["id"].as_str().unwrap());
    let key = key_of(&admin.post("/keys", &json!({"wallet": "w"})).await);
    let path = format!("/keys/{}", key.id);
    for (method, path, body) in [
        ("PATCH", path.as_str(), json!([])),
        ("PATCH", &path, json!([null, null])),
        ("PATCH", &path, json!({"window": ["1", "day", null]})),
        ("POST", "/keys", json!(["w"])),
        (
            "POST",
            "/keys",
            json!({"wallet": "w", "window": ["1", "day", null]}),
        ),
        ("POST", &format!("{path}/rotate"), json!([60])),
        ("POST", "/wallets", json!(["x"])),
        ("PATCH", &wallet, json!({"alerts": ["5"]})),
        (
            "POST",
            "/channels/try",
            json!({"channel": [null, "sim", null, null, null], "model": "m"}),
        ),
        ("POST", "/tokens", json!(["x", "viewer"])),
    ] {
        let answer = admin.send(method, path, Some(&body)).await;
        assert_refused(&answer, 400, "invalid_request");
    }
}

#[tokio::test]
async fn a_change_without_effect_writes_nothing() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let body = json!({"name": "w", "balance": "5", "credit_limit": "2"});
    let wallet = admin.post("/wallets", &body).await;
    let wallet = format!("/wallets/{}", wallet["id"].as_str().unwrap());
    let window = json!({"amount": "3", "per": "day", "time_zone": "Europe/Berlin"});
    let body = json!({"wallet": "w", "name": "k", "rpm": 5, "tags": ["a"], "window": window});
    let key = admin.post("/keys", &body).await;
    let key = format!("/keys/{}", key["id"].as_str().unwrap());
    let token = json!({"name": "t", "role": "viewer"});
    let token = admin.post("/tokens", &token).await;
    let token = format!("/tokens/{}", token["id"].as_str().unwrap());
    admin.send("DELETE", &token, None).await;
    let mut config = admin.get("/config").await;
    config.as_object_mut().unwrap().remove("kept_in");
    let text = std::fs::read_to_string(gateway.config_file()).unwrap();
    let entries = async || admin.get(&format!("{wallet}/entries")).await;
    let before = (audit_rows(&admin).await, entries().await);

    for (method, path, body) in [
        ("PATCH", &wallet, Some(json!({}))),
        (
            "PATCH",
            &wallet,
            Some(json!({"name": "w", "credit_limit": "2", "enabled": true})),
        ),
        ("PATCH", &wallet, Some(json!({"credit_limit": "2.000000"}))),
        ("PATCH", &key, Some(json!({}))),
        (
            "PATCH",
            &key,
            Some(json!({"name": "k", "rpm": 5, "tags": ["a"], "window": window, "limit": null})),
        ),
        ("PUT", &"/config".to_owned(), Some(config.clone())),
        ("DELETE", &token, None),
    ] {
        let answer = admin.send(method, path, body.as_ref()).await;
        assert!(answer.status() < 300, "{method} {path}: {}", answer.text());
    }
    assert_eq!((audit_rows(&admin).await, entries().await), before);
    assert_eq!(
        std::fs::read_to_string(gateway.config_file()).unwrap(),
        text
    );
    assert_eq!(admin.get("/config").await["version"], config["version"]);
    gateway.verify().await;
}

/// K2: the node that changes a key must not use its cached copy afterwards.
#[tokio::test]
async fn a_change_of_a_key_holds_at_once_on_the_node_that_made_it() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let old = with_recognised_key(&gateway).await;
    let path = format!("/keys/{}", old.id);
    let made = admin.post(&format!("{path}/rotate"), &json!({})).await;
    let key = key_of(&made);
    assert_eq!(gateway.get(&old, "/v1/models").await.status(), 401);
    assert_eq!(gateway.chat(&old, &ask("hello")).await.status(), 401);
    gateway.chat(&key, &ask("hello")).await.ok();

    let change = json!({"models": ["nobody/*"]});
    admin.send("PATCH", &path, Some(&change)).await.ok();
    assert_eq!(gateway.chat(&key, &ask("hello")).await.status(), 404);
    let change = json!({"models": null, "enabled": false});
    admin.send("PATCH", &path, Some(&change)).await.ok();
    assert_eq!(gateway.get(&key, "/v1/models").await.status(), 401);
    let change = json!({"enabled": true});
    admin.send("PATCH", &path, Some(&change)).await.ok();
    gateway.chat(&key, &ask("hello")).await.ok();
}

#[tokio::test]
async fn a_second_rotation_ends_the_overlap_of_the_first() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let first = with_recognised_key(&gateway).await;
    let path = format!("/keys/{}/rotate", first.id);
    let overlap = json!({"overlap_seconds": 3600});
    let second = key_of(&admin.post(&path, &overlap).await);
    for key in [&first, &second] {
        gateway.get(key, "/v1/models").await.ok();
    }
    let made = admin.post(&path, &overlap).await;
    let third = key_of(&made);
    assert_eq!(gateway.get(&first, "/v1/models").await.status(), 401);
    for key in [&second, &third] {
        gateway.get(key, "/v1/models").await.ok();
    }
    // The audit row shows the overlap that the second rotation ended.
    let rows = admin.get("/audit?action=key.rotate").await;
    let newest = &rows["data"][0];
    assert!(newest["before"]["old_secret_until"].is_i64(), "{newest}");
    assert_eq!(
        newest["after"]["old_secret_until"],
        made["old_secret_until"]
    );
}

#[tokio::test]
async fn whoever_guesses_sessions_is_locked_out_and_an_ended_session_is_no_guess() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let by_cookie = async |cookie: &str| {
        let cookie = format!("tollgate_admin={cookie}");
        let request = Request::get("/admin/v1/session").header("cookie", &cookie);
        AdminClient::without_token(&gateway)
            .send_as_is(request)
            .await
    };
    // A browser keeps sending the cookie of a session that has ended. All requests with this cookie count as one guess.
    for _ in 0..30 {
        assert_refused(&by_cookie("ended").await, 401, "invalid_admin_token");
    }
    admin.get("/session").await;
    let sign_in = json!({"token": super::client::TOKEN});
    let open = admin.send("POST", "/session", Some(&sign_in)).await;
    let set = open.header("set-cookie").unwrap();
    let (_, session) = set.split(';').next().unwrap().split_once('=').unwrap();
    for guess in 0..9 {
        let answer = by_cookie(&format!("guess-{guess}")).await;
        assert_refused(&answer, 401, "invalid_admin_token");
    }
    let answer = by_cookie("guess-9").await;
    assert_refused(&answer, 429, "rate_limit_exceeded");
    let answer = admin.send("GET", "/session", None).await;
    assert_refused(&answer, 429, "rate_limit_exceeded");
    // Sessions that are open from the same address stay usable.
    by_cookie(session).await.ok();
}
