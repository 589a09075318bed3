//! `/admin/v1/session`: signing in from a browser.

use serde_json::{Value, json};

use super::client::TOKEN;
use super::{AdminClient, assert_refused, with_token};
use crate::harness::{Answer, GatewayBuilder, Request, TestGateway};

const PATH: &str = "/admin/v1/session";

async fn sign_in(gateway: &TestGateway, body: &Value) -> Answer {
    let request = Request::post(PATH).json(body);
    AdminClient::without_token(gateway)
        .send_as_is(request)
        .await
}

/// The cookie that the answer sets, as a browser sends it back.
fn cookie(answer: &Answer) -> String {
    assert_eq!(answer.status(), 201, "{}", answer.text());
    let set = answer.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(set.contains(part), "{set}");
    }
    set.split(';').next().unwrap().to_owned()
}

async fn with_cookie(gateway: &TestGateway, cookie: &str, request: Request) -> Answer {
    let request = request.header("cookie", cookie);
    AdminClient::without_token(gateway)
        .send_as_is(request)
        .await
}

#[tokio::test]
async fn a_session_reads_by_its_cookie_and_changes_with_its_csrf_token() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let answer = sign_in(&gateway, &json!({"token": TOKEN})).await;
    let cookie = cookie(&answer);
    let session = answer.json();
    assert_eq!(
        (&session["name"], &session["role"]),
        (&json!("config"), &json!("owner"))
    );
    assert_eq!(session["ready"], true);
    assert_eq!(session["example_model"], "maker/chat");
    assert!(
        session["public_url"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:")
    );
    let shown = with_cookie(&gateway, &cookie, Request::get(PATH))
        .await
        .ok();
    assert_eq!(shown.json(), session);
    let csrf = session["csrf"].as_str().unwrap();

    let create = || Request::post("/admin/v1/tokens").json(&json!({"name": "x", "role": "viewer"}));
    let answer = with_cookie(&gateway, &cookie, create()).await;
    assert_refused(&answer, 403, "cross_site_request");
    let answer = with_cookie(&gateway, &cookie, create().header("x-csrf-token", "wrong")).await;
    assert_refused(&answer, 403, "cross_site_request");
    let foreign = create()
        .header("x-csrf-token", csrf)
        .header("origin", "http://evil.example");
    let answer = with_cookie(&gateway, &cookie, foreign).await;
    assert_refused(&answer, 403, "cross_site_request");
    let own = create()
        .header("x-csrf-token", csrf)
        .header("origin", "http://gateway");
    let answer = with_cookie(&gateway, &cookie, own).await;
    assert_eq!(answer.status(), 201, "{}", answer.text());

    let end = Request::new("DELETE", PATH).header("x-csrf-token", csrf);
    let answer = with_cookie(&gateway, &cookie, end).await;
    assert_eq!(answer.status(), 204);
    assert!(answer.header("set-cookie").unwrap().contains("Max-Age=0"));
    let answer = with_cookie(&gateway, &cookie, Request::get(PATH)).await;
    assert_refused(&answer, 401, "invalid_admin_token");
}

#[tokio::test]
async fn a_session_ends_with_its_token() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let made = admin
        .post("/tokens", &json!({"name": "pat", "role": "support"}))
        .await;
    let answer = sign_in(&gateway, &json!({"token": made["secret"]})).await;
    let cookie = cookie(&answer);
    let shown = with_cookie(&gateway, &cookie, Request::get(PATH))
        .await
        .ok();
    assert_eq!(shown.json()["role"], "support");
    let answer = with_cookie(&gateway, &cookie, Request::get("/admin/v1/tokens")).await;
    assert_refused(&answer, 403, "role_not_sufficient");
    let path = format!("/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(admin.send("DELETE", &path, None).await.status(), 204);
    let answer = with_cookie(&gateway, &cookie, Request::get(PATH)).await;
    assert_refused(&answer, 401, "invalid_admin_token");
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let gateway = TestGateway::start().await;
    let made = gateway
        .cli_json(&["token", "sign-in-link", "--role", "viewer"])
        .await;
    let code = made["code"].as_str().unwrap();
    assert!(
        made["link"]
            .as_str()
            .unwrap()
            .ends_with(&format!("/#/sign-in?code={code}"))
    );
    let answer = sign_in(&gateway, &json!({"code": code})).await;
    let cookie = cookie(&answer);
    assert_eq!(answer.json()["role"], "viewer");
    with_cookie(&gateway, &cookie, Request::get("/admin/v1/audit"))
        .await
        .ok();
    let answer = sign_in(&gateway, &json!({"code": code})).await;
    assert_refused(&answer, 401, "invalid_admin_token");
}

#[tokio::test]
async fn a_sign_in_that_makes_no_sense_is_refused_and_guesses_are_counted() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    for body in [
        json!({}),
        json!({"token": TOKEN, "code": "x"}),
        json!({"user": "x"}),
    ] {
        let answer = sign_in(&gateway, &body).await;
        assert_refused(&answer, 400, "invalid_request");
    }
    let foreign = Request::post(PATH)
        .json(&json!({"token": TOKEN}))
        .header("origin", "https://evil.example");
    let answer = AdminClient::without_token(&gateway)
        .send_as_is(foreign)
        .await;
    assert_refused(&answer, 403, "cross_site_request");
    for _ in 0..5 {
        for body in [json!({"token": "guess"}), json!({"code": "guess"})] {
            let answer = sign_in(&gateway, &body).await;
            assert_refused(&answer, 401, "invalid_admin_token");
        }
    }
    let answer = sign_in(&gateway, &json!({"token": TOKEN})).await;
    assert_refused(&answer, 429, "rate_limit_exceeded");
}

#[tokio::test]
async fn a_session_stays_open_while_its_address_is_locked_out() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let cookie = cookie(&sign_in(&gateway, &json!({"token": TOKEN})).await);
    for _ in 0..10 {
        let guesser = AdminClient::with_token(&gateway, "guess");
        let answer = guesser.send("GET", "/audit", None).await;
        assert_refused(&answer, 401, "invalid_admin_token");
    }
    let again = sign_in(&gateway, &json!({"token": TOKEN})).await;
    assert_refused(&again, 429, "rate_limit_exceeded");
    with_cookie(&gateway, &cookie, Request::get(PATH))
        .await
        .ok();
}
