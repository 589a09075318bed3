//! `/admin/v1/tokens`, and the roles of tokens.

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, TestGateway, eventually};

#[tokio::test]
async fn a_token_works_until_it_is_revoked_and_its_secret_is_shown_once() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let body = json!({"name": "till", "role": "viewer"});
    let answer = admin.send("POST", "/tokens", Some(&body)).await;
    assert_eq!(answer.status(), 201);
    let made = answer.json();
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with(made["prefix"].as_str().unwrap()));
    assert_eq!(
        (&made["name"], &made["role"]),
        (&json!("till"), &json!("viewer"))
    );

    let till = AdminClient::with_token(&gateway, secret);
    till.get("/audit").await;
    let listed = eventually("the use of the token to be noted", async || {
        let list = admin.get("/tokens").await;
        assert!(!list.to_string().contains(secret));
        let token = list["data"][0].clone();
        token["last_used_at"].is_i64().then_some(token)
    });
    assert_eq!(listed.await["id"], made["id"]);

    let path = format!("/tokens/{}", made["id"].as_str().unwrap());
    for _ in 0..2 {
        let answer = admin.send("DELETE", &path, None).await;
        assert_eq!(answer.status(), 204);
    }
    let answer = till.send("GET", "/audit", None).await;
    assert_refused(&answer, 401, "invalid_admin_token");
    let audit = admin
        .get(&format!("/audit?target={}", made["id"].as_str().unwrap()))
        .await;
    let rows = audit["data"].as_array().unwrap();
    let actions: Vec<_> = rows.iter().map(|row| &row["action"]).collect();
    assert_eq!(actions, ["token.revoke", "token.create"]);
    assert_eq!(rows[0]["actor"], "config");
    assert!(rows[0]["request_id"].as_str().unwrap().starts_with("req_"));
    assert!(!audit.to_string().contains(secret));
}

#[tokio::test]
async fn the_command_line_makes_tokens_and_no_token_need_be_configured() {
    let gateway = TestGateway::start().await;
    let answer = AdminClient::with_token(&gateway, "")
        .send("GET", "/audit", None)
        .await;
    assert_refused(&answer, 401, "invalid_admin_token");
    let made = gateway
        .cli_json(&["token", "create", "ops", "--role", "owner"])
        .await;
    let admin = AdminClient::with_token(&gateway, made["secret"].as_str().unwrap());
    let audit = admin.get("/audit?actor=cli&limit=1").await;
    assert_eq!(audit["data"][0]["action"], "token.create");
    let id = made["id"].as_str().unwrap();
    let list = gateway.cli_json(&["token", "list"]).await;
    assert_eq!(list[0]["id"], *id);
    gateway.cli_json(&["token", "revoke", id]).await;
    let answer = admin.send("GET", "/audit", None).await;
    assert_refused(&answer, 401, "invalid_admin_token");
    let audit = gateway.cli_json(&["audit", "--target", id]).await;
    let actions: Vec<_> = audit
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["action"])
        .collect();
    assert_eq!(actions, ["token.revoke", "token.create"]);
}

#[tokio::test]
async fn a_role_that_is_too_low_is_refused() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    for role in ["viewer", "support", "operator"] {
        let made = admin
            .post("/tokens", &json!({"name": role, "role": role}))
            .await;
        let low = AdminClient::with_token(&gateway, made["secret"].as_str().unwrap());
        low.get("/audit").await;
        let answer = low.send("GET", "/tokens", None).await;
        assert_refused(&answer, 403, "role_not_sufficient");
        let answer = low
            .send(
                "POST",
                "/tokens",
                Some(&json!({"name": "x", "role": "owner"})),
            )
            .await;
        assert_refused(&answer, 403, "role_not_sufficient");
    }
    assert_eq!(
        admin.get("/tokens").await["data"].as_array().unwrap().len(),
        3
    );
}

#[tokio::test]
async fn a_token_that_makes_no_sense_is_refused() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    for (body, param) in [
        (json!({"name": "", "role": "viewer"}), json!("name")),
        (
            json!({"name": "x".repeat(201), "role": "viewer"}),
            json!("name"),
        ),
        (json!({"name": "x", "role": "king"}), json!("role")),
        (json!({"name": "x"}), Value::Null),
        (
            json!({"name": "x", "role": "viewer", "colour": "red"}),
            json!("colour"),
        ),
        (json!({"name": 7, "role": "viewer"}), json!("name")),
        (json!([]), Value::Null),
    ] {
        let answer = admin.send("POST", "/tokens", Some(&body)).await;
        assert_eq!(
            assert_refused(&answer, 400, "invalid_request"),
            param,
            "{body}"
        );
    }
    for id in ["x", "tok_0123456789abcdef", "tok_%20"] {
        let answer = admin.send("DELETE", &format!("/tokens/{id}"), None).await;
        assert_refused(&answer, 404, "not_found");
    }
}
