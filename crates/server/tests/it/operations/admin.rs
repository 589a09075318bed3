//! The operators' listener: health, readiness and metrics need no token. Everything else needs one, except sign-in, the
//! API's description and the files of the console (K8).

use serde_json::json;

use crate::harness::{
    Answer, CannedUpstream, Connection, GatewayBuilder, Request, TestGateway, ask, eventually,
    expected_cost, with,
};

async fn admin(gateway: &TestGateway, request: &Request) -> Answer {
    let mut connection = Connection::open(gateway.admin()).await;
    connection.send(request).await;
    connection.answer().await
}

#[tokio::test]
async fn health_readiness_and_metrics_need_no_token() {
    let gateway = TestGateway::start().await;
    assert_eq!(
        gateway.admin_get("/healthz").await.ok().json()["status"],
        "ok"
    );
    let ready = gateway.admin_get("/readyz").await.ok().json();
    assert_eq!(ready["ready"], true);
    assert_eq!(ready["store"], true);
    assert_eq!(ready["channels"]["main"], "closed");
    gateway.admin_get("/metrics").await.ok();
    for target in [
        "/admin",
        "/admin/v1/audit",
        "/v1/models",
        "/metrics/",
        "/healthz/x",
        "/console",
    ] {
        let answer = gateway.admin_get(target).await;
        assert_eq!(answer.status(), 401, "{target}");
        assert_eq!(answer.json()["error"]["code"], "invalid_admin_token");
    }
    let answer = admin(&gateway, &Request::post("/healthz")).await;
    assert_eq!(answer.status(), 401);
}

#[tokio::test]
async fn a_token_opens_what_is_behind_it() {
    let gateway = GatewayBuilder::default()
        .setting("admin", "token = { file = \"admin-token\" }")
        .file("admin-token", "a-long-admin-token-0123456789abcdef")
        .start()
        .await;
    let with_token = |token: &str| Request::get("/anything").bearer(token);
    let known = admin(&gateway, &with_token("a-long-admin-token-0123456789abcdef")).await;
    assert_eq!(known.status(), 404, "known, but there is nothing here yet");
    for token in [
        "",
        "wrong",
        "a-long-admin-token-0123456789abcde",
        "a-long-admin-token-0123456789abcdeff",
    ] {
        assert_eq!(
            admin(&gateway, &with_token(token)).await.status(),
            401,
            "{token}"
        );
    }
    // An API key is not an admin token.
    gateway.wallet("w", &[]).await;
    let key = gateway.key("w", &[]).await;
    assert_eq!(
        admin(&gateway, &with_token(&key.secret)).await.status(),
        401
    );
}

/// K8: an empty secret prevents the start.
#[tokio::test]
async fn an_empty_admin_token_does_not_start() {
    let mut gateway = TestGateway::start().await;
    gateway.kill();
    let config = std::fs::read_to_string(gateway.config_file()).unwrap();
    let config = config.replacen("[admin]", "[admin]\ntoken = { file = \"empty\" }", 1);
    std::fs::write(gateway.config_file(), config).unwrap();
    std::fs::write(gateway.folder().join("empty"), "\n").unwrap();
    let start =
        crate::harness::run(&["serve", "--config", "tollgate.toml"], gateway.folder()).await;
    assert_eq!(start.status.code(), Some(1));
    assert!(start.stderr.contains("admin.token"), "{}", start.stderr);
}

#[tokio::test]
async fn metrics_show_requests_tokens_credits_and_holds() {
    let canned = CannedUpstream::paused(r#"{"choices":[{"index":0,"message":{"content":"x"}}],"usage":{"prompt_tokens":8,"completion_tokens":1}}"#).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let usage = gateway.chat(&key, &ask("hello")).await.ok().json()["usage"].clone();
    gateway.chat(&key, &json!({})).await;
    gateway.send(&Request::get("/v1/models")).await;
    gateway.send(&Request::get("/v1/some/private/path")).await;
    let body = with(
        ask("hello"),
        &json!({ "model": crate::harness::CANNED_MODEL }),
    );
    let watch = async {
        canned.wait_for_requests(1).await;
        // A hold is counted once its batch is written.
        let metrics = eventually("the hold to be counted", async || {
            let metrics = gateway.admin_get("/metrics").await.ok();
            metrics
                .text()
                .contains("\ntollgate_holds_open 1")
                .then_some(metrics)
        })
        .await;
        canned.release_answers();
        metrics.text().to_owned()
    };
    let (answer, text) = tokio::join!(gateway.chat(&key, &body), watch);
    answer.ok();
    let number = |name: &str| usage[name].as_u64().unwrap();
    for line in [
        "tollgate_requests_total{endpoint=\"/v1/chat/completions\",status=\"200\"} 1".to_owned(),
        "tollgate_requests_total{endpoint=\"/v1/chat/completions\",status=\"400\"} 1".to_owned(),
        "tollgate_requests_total{endpoint=\"/v1/models\",status=\"401\"} 1".to_owned(),
        "tollgate_requests_total{endpoint=\"unknown\",status=\"404\"} 1".to_owned(),
        format!(
            "tollgate_tokens_total{{model=\"maker/chat\",class=\"input\"}} {}",
            number("prompt_tokens")
        ),
        format!(
            "tollgate_tokens_total{{model=\"maker/chat\",class=\"output\"}} {}",
            number("completion_tokens")
        ),
        format!(
            "tollgate_charged_micro_credits_total{{model=\"maker/chat\"}} {}",
            expected_cost(&usage)
        ),
        "tollgate_holds_open 1".to_owned(),
        "tollgate_in_flight 1".to_owned(),
        "tollgate_channel_state{channel=\"main\",state=\"closed\"} 1".to_owned(),
        "tollgate_first_byte_seconds_count{endpoint=\"/v1/chat/completions\"} 2".to_owned(),
        "tollgate_ledger_queue_depth".to_owned(),
        "tollgate_journal_queue_depth".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is missing in\n{text}");
    }
    assert!(text.trim_end().ends_with("# EOF"));
    // Labels have a bounded set of values: nothing that a caller chose appears in them.
    assert!(!text.contains("private"));
    for secret in [key.secret.as_str(), &key.id, crate::harness::UPSTREAM_KEY] {
        assert!(!text.contains(secret));
    }
}

/// Metrics are for the operator's scrapers, not for callers.
#[tokio::test]
async fn the_public_listener_serves_no_operators() {
    let (gateway, key) = TestGateway::funded().await;
    for target in ["/metrics", "/healthz", "/readyz", "/admin"] {
        assert_eq!(gateway.get(&key, target).await.status(), 404, "{target}");
    }
}
