//! `tollgate health`, the command for health checks of containers.

use std::net::SocketAddr;

use crate::harness::{Output, Plot, Stage, eventually, signal};

async fn health(stage: &Stage) -> Output {
    health_at(stage, stage.admin()).await
}

async fn health_at(stage: &Stage, address: SocketAddr) -> Output {
    stage
        .cli(&["health", "--address", &address.to_string()])
        .await
}

#[tokio::test]
async fn a_ready_gateway_is_told_from_one_that_is_gone() {
    let mut stage = Stage::open().await;
    let ready = health(&stage).await;
    assert!(ready.status.success(), "{}", ready.stderr);
    assert_eq!(ready.stdout, "ready\n");
    let address = stage.admin();
    stage.kill();
    let gone = health_at(&stage, address).await;
    assert_eq!(gone.status.code(), Some(1));
    assert!(gone.stderr.contains("no answer from"), "{}", gone.stderr);
}

#[tokio::test]
async fn a_gateway_that_is_about_to_end_is_not_ready() {
    let stage = Plot::default()
        .setting("timeouts", "shutdown_notice_ms = 20000")
        .open()
        .await;
    signal("TERM", stage.pid());
    let leaving = eventually("a gateway that is not ready", async || {
        Some(health(&stage).await).filter(|it| !it.status.success())
    })
    .await;
    assert!(
        leaving.stderr.contains("not ready (503"),
        "{}",
        leaving.stderr
    );
}

#[tokio::test]
async fn a_certificate_for_another_name_does_not_matter_on_the_own_machine() {
    let files = r#"tls = { cert_file = "cert.pem", key_file = "key.pem" }"#;
    let stage = Plot::default()
        .file("cert.pem", include_str!("../http/tls_files/first.pem"))
        .file("key.pem", include_str!("../http/tls_files/first-key.pem"))
        .setting("admin", files)
        .open()
        .await;
    let ready = health(&stage).await;
    assert!(ready.status.success(), "{}", ready.stderr);
}
