//! The operators' listener: health, readiness and metrics; everything else needs a token (K8).

use serde_json::json;

use crate::harness::{
    Answer, Canned, Connection, Plot, Request, Stage, ask, by_hand, eventually, with,
};

async fn admin(stage: &Stage, request: &Request) -> Answer {
    let mut connection = Connection::open(stage.admin()).await;
    connection.send(request).await;
    connection.answer().await
}

#[tokio::test]
async fn health_readiness_and_metrics_need_no_token() {
    let stage = Stage::open().await;
    assert_eq!(
        stage.admin_get("/healthz").await.ok().json()["status"],
        "ok"
    );
    let ready = stage.admin_get("/readyz").await.ok().json();
    assert_eq!(ready["ready"], true);
    assert_eq!(ready["store"], true);
    assert_eq!(ready["channels"]["main"], "closed");
    stage.admin_get("/metrics").await.ok();
    for target in [
        "/admin",
        "/admin/v1/audit",
        "/v1/models",
        "/metrics/",
        "/healthz/x",
        "/console",
    ] {
        let answer = stage.admin_get(target).await;
        assert_eq!(answer.status(), 401, "{target}");
        assert_eq!(answer.json()["error"]["code"], "invalid_admin_token");
    }
    let answer = admin(&stage, &Request::post("/healthz")).await;
    assert_eq!(answer.status(), 401);
}

#[tokio::test]
async fn a_token_opens_what_is_behind_it() {
    let stage = Plot::default()
        .setting("admin", "token = { file = \"admin-token\" }")
        .file("admin-token", "a-long-admin-token-0123456789abcdef")
        .open()
        .await;
    let with_token = |token: &str| Request::get("/anything").bearer(token);
    let known = admin(&stage, &with_token("a-long-admin-token-0123456789abcdef")).await;
    assert_eq!(known.status(), 404, "known, but there is nothing here yet");
    for token in [
        "",
        "wrong",
        "a-long-admin-token-0123456789abcde",
        "a-long-admin-token-0123456789abcdeff",
    ] {
        assert_eq!(
            admin(&stage, &with_token(token)).await.status(),
            401,
            "{token}"
        );
    }
    // An API key is not an admin token.
    stage.wallet("w", &[]).await;
    let key = stage.key("w", &[]).await;
    assert_eq!(admin(&stage, &with_token(&key.secret)).await.status(), 401);
}

/// K8: an empty secret prevents the start.
#[tokio::test]
async fn an_empty_admin_token_does_not_start() {
    let mut stage = Stage::open().await;
    stage.kill();
    let config = std::fs::read_to_string(stage.config_file()).unwrap();
    let config = config.replacen("[admin]", "[admin]\ntoken = { file = \"empty\" }", 1);
    std::fs::write(stage.config_file(), config).unwrap();
    std::fs::write(stage.folder().join("empty"), "\n").unwrap();
    let start = crate::harness::run(&["serve", "--config", "tollgate.toml"], stage.folder()).await;
    assert_eq!(start.status.code(), Some(1));
    assert!(start.stderr.contains("admin.token"), "{}", start.stderr);
}

#[tokio::test]
async fn metrics_show_requests_tokens_credits_and_holds() {
    let canned = Canned::waiting(r#"{"choices":[{"index":0,"message":{"content":"x"}}],"usage":{"prompt_tokens":8,"completion_tokens":1}}"#).await;
    let (stage, key) = Plot::default().entries(&canned.entries()).funded().await;
    let usage = stage.chat(&key, &ask("hello")).await.ok().json()["usage"].clone();
    stage.chat(&key, &json!({})).await;
    stage.send(&Request::get("/v1/models")).await;
    stage.send(&Request::get("/v1/some/private/path")).await;
    let body = with(
        ask("hello"),
        &json!({ "model": crate::harness::CANNED_MODEL }),
    );
    let watch = async {
        canned.came(1).await;
        // A hold is counted once its batch is written.
        let metrics = eventually("the hold to be counted", async || {
            let metrics = stage.admin_get("/metrics").await.ok();
            metrics
                .text()
                .contains("\ntollgate_holds_open 1")
                .then_some(metrics)
        })
        .await;
        canned.open();
        metrics.text().to_owned()
    };
    let (answer, text) = tokio::join!(stage.chat(&key, &body), watch);
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
            by_hand(&usage)
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
    let (stage, key) = Stage::funded().await;
    for target in ["/metrics", "/healthz", "/readyz", "/admin"] {
        assert_eq!(stage.get(&key, target).await.status(), 404, "{target}");
    }
}
