//! Authentication of the admin API: which requests are accepted, and lockout after wrong tokens.

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, Request};

#[tokio::test]
async fn a_path_that_does_not_exist_is_told_only_to_those_with_a_token() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    for path in ["/nothing", "/wallets/x/nothing", "/audit/x"] {
        let answer = AdminClient::without_token(&gateway)
            .send("GET", path, None)
            .await;
        assert_refused(&answer, 401, "invalid_admin_token");
        let answer = AdminClient::with_token(&gateway, "wrong")
            .send("GET", path, None)
            .await;
        assert_refused(&answer, 401, "invalid_admin_token");
        let answer = AdminClient::new(&gateway).send("GET", path, None).await;
        assert_refused(&answer, 404, "not_found");
    }
    let answer = AdminClient::new(&gateway)
        .send("POST", "/audit", None)
        .await;
    assert_refused(&answer, 405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("GET,HEAD"));
}

#[tokio::test]
async fn whoever_guesses_tokens_is_locked_out_even_with_the_right_one() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    for _ in 0..10 {
        let answer = AdminClient::with_token(&gateway, "guess")
            .send("GET", "/audit", None)
            .await;
        assert_refused(&answer, 401, "invalid_admin_token");
    }
    // A request without a token does not count as a guess, but is locked out too.
    for admin in [
        AdminClient::new(&gateway),
        AdminClient::without_token(&gateway),
    ] {
        let answer = admin.send("GET", "/audit", None).await;
        assert_refused(&answer, 429, "rate_limit_exceeded");
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    gateway.admin_get("/healthz").await.ok();
}

#[tokio::test]
async fn answers_tell_browsers_neither_to_keep_nor_to_frame_nor_to_share_them() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let request = Request::get("/admin/v1/audit").header("origin", "https://evil.example");
    for answer in [
        AdminClient::new(&gateway)
            .send_as_is(request.clone())
            .await
            .ok(),
        AdminClient::without_token(&gateway)
            .send_as_is(request)
            .await,
    ] {
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn the_console_and_the_description_need_no_token() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let page = gateway.admin_get("/").await.ok();
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let description = gateway.admin_get("/openapi.json").await.ok().json();
    assert_eq!(description["openapi"], "3.1.0");
    assert!(description["paths"]["/admin/v1/audit"]["get"].is_object());
}
