//! `tollgate health`, the command for health checks of containers.

use std::net::SocketAddr;

use crate::harness::{GatewayBuilder, Output, TestGateway, eventually, signal};

async fn health(gateway: &TestGateway) -> Output {
    health_at(gateway, gateway.admin()).await
}

async fn health_at(gateway: &TestGateway, address: SocketAddr) -> Output {
    gateway
        .cli(&["health", "--address", &address.to_string()])
        .await
}

#[tokio::test]
async fn a_ready_gateway_is_told_from_one_that_is_gone() {
    let mut gateway = TestGateway::start().await;
    let ready = health(&gateway).await;
    assert!(ready.status.success(), "{}", ready.stderr);
    assert_eq!(ready.stdout, "ready\n");
    let address = gateway.admin();
    gateway.kill();
    let gone = health_at(&gateway, address).await;
    assert_eq!(gone.status.code(), Some(1));
    assert!(gone.stderr.contains("no answer from"), "{}", gone.stderr);
}

#[tokio::test]
async fn a_gateway_that_is_about_to_end_is_not_ready() {
    let gateway = GatewayBuilder::default()
        .setting("timeouts", "shutdown_notice_ms = 20000")
        .start()
        .await;
    signal("TERM", gateway.pid());
    let leaving = eventually("a gateway that is not ready", async || {
        Some(health(&gateway).await).filter(|it| !it.status.success())
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
    let gateway = GatewayBuilder::default()
        .file("cert.pem", include_str!("../http/tls_files/first.pem"))
        .file("key.pem", include_str!("../http/tls_files/first-key.pem"))
        .setting("admin", files)
        .start()
        .await;
    let ready = health(&gateway).await;
    assert!(ready.status.success(), "{}", ready.stderr);
}
