//! The log on standard error, in both of its formats.

use serde_json::Value;

use crate::harness::{
    Channel, GatewayBuilder, Request, Running, TestGateway, UPSTREAM_KEY, ask, eventually, signal,
};

/// Kills the gateway, runs it again until it has logged a line with this text, stops it, and returns the lines of this
/// second run.
async fn log_of_run(gateway: &mut TestGateway, until: &str) -> Vec<String> {
    gateway.kill();
    let arguments = ["serve", "--config", "tollgate.toml"];
    let mut process = Running::start(&arguments, gateway.folder(), Channel::Stderr);
    process.line(until, |line| line.contains(until)).await;
    signal("TERM", process.pid());
    assert!(process.ended().await.success());
    process
        .line("its last word", |line| line.contains("stopped"))
        .await;
    process.lines()
}

#[tokio::test]
async fn a_log_in_json_has_one_object_on_each_line_and_no_secret() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("log", "format = \"json\"")
        .funded()
        .await;
    gateway
        .sim
        .queue_faults("sim-chat", "reset=head", 3)
        .unwrap();
    let answer = gateway.chat(&key, &ask("a private question")).await;
    assert_eq!(answer.status(), 502, "{answer:?}");
    let id = answer.header("x-request-id").unwrap().to_owned();
    let line = gateway.logged("the failed call", |line| {
        line.contains("an upstream call failed")
    });
    let line: Value = serde_json::from_str(&line.await).unwrap();
    assert_eq!(line["request_id"], id, "{line}");
    assert_eq!(line["channel"], "main", "{line}");
    for line in gateway.log() {
        let object: Value = serde_json::from_str(&line).unwrap();
        for member in ["timestamp", "level", "message"] {
            assert!(object[member].is_string(), "{line}");
        }
        for secret in [UPSTREAM_KEY, &key.secret, "a private question"] {
            assert!(!line.contains(secret), "{line}");
        }
    }
}

#[tokio::test]
async fn a_refused_credential_is_logged_with_the_call() {
    let video = r#"
        [[model]]
        id = "maker/film"
        kind = "video"
        routes = [{ channel = "main", model = "sim-video" }]
        price = { video_second = "0.05" }
        profile = { base = "video-a" }
    "#;
    let film = serde_json::json!({ "model": "maker/film", "prompt": "a boat" });
    for (upstream_model, path, body) in [
        ("sim-chat", "/v1/chat/completions", ask("hello")),
        ("sim-video", "/v1/videos/generations", film),
    ] {
        let (gateway, key) = GatewayBuilder::default()
            .entries(video)
            .setting("log", "format = \"json\"")
            .funded()
            .await;
        gateway
            .sim
            .queue_faults(upstream_model, "status=403", 1)
            .unwrap();
        let request = Request::post(path).json(&body).bearer(&key.secret);
        let answer = gateway.send(&request).await;
        assert_eq!(answer.status(), 502, "{answer:?}");
        let line = gateway.logged("the refused credential", |line| {
            line.contains("refuses our credential")
        });
        let line: Value = serde_json::from_str(&line.await).unwrap();
        let id = answer.header("x-request-id").unwrap();
        assert_eq!(line["request_id"], id, "{line}");
    }
}

#[tokio::test]
async fn a_log_in_text_is_for_people_wherever_it_goes() {
    let mut gateway = TestGateway::start().await;
    let text = std::fs::read_to_string(gateway.config_file()).unwrap();
    std::fs::write(
        gateway.config_file(),
        format!("[log]\nformat = \"text\"\n{text}"),
    )
    .unwrap();
    let lines = log_of_run(&mut gateway, " serving ").await;
    for line in &lines {
        assert!(serde_json::from_str::<Value>(line).is_err(), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }
    let serving = lines
        .iter()
        .find(|line| line.contains(" serving "))
        .unwrap();
    assert!(serving.contains("address=127.0.0.1:"), "{serving}");
}

#[tokio::test]
async fn a_format_that_does_not_exist_is_refused() {
    let gateway = TestGateway::start().await;
    let text = std::fs::read_to_string(gateway.config_file()).unwrap();
    std::fs::write(
        gateway.config_file(),
        format!("[log]\nformat = \"xml\"\n{text}"),
    )
    .unwrap();
    let checked = eventually("a check", async || Some(gateway.cli(&["check"]).await)).await;
    assert_eq!(checked.status.code(), Some(1));
    let output = format!("{}{}", checked.stdout, checked.stderr);
    assert!(output.contains("log.format"), "{output}");
    assert!(output.contains("`text` or `json`"), "{output}");
}
