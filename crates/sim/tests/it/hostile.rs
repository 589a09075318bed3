//! Tests that hostile bytes get an error or a close, and that the simulator keeps running.

use crate::client::{KEY, call, chat, get, messages};
use serde_json::{Value, json};
use sim::{Settings, Sim};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn is_alive(sim: &Sim) -> bool {
    get(sim, "/v1/models").await.status == 200
}

#[tokio::test]
async fn broken_http_is_refused_or_closed() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    for bytes in [
        &b"\x00\xff\xfe garbage\r\n\r\n"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nshort",
        b"",
    ] {
        let mut stream = TcpStream::connect(sim.address()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // The simulator may also reset the connection instead of closing it.
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(bytes));
    }
    assert!(is_alive(&sim).await);
}

#[tokio::test]
async fn odd_json_is_refused() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let deep = format!(
        "{{\"model\":\"sim-chat\",\"messages\":{}",
        "[".repeat(100_000)
    );
    let head = format!("authorization: Bearer {KEY}\r\n");
    for body in [
        &b"\xff\xfe"[..],
        b"[]",
        b"{}",
        b"null",
        br#"{"model":{},"messages":[]}"#,
        br#"{"model":"m","messages":{}}"#,
        br#"{"model":"m","messages":[null]}"#,
        br#"{"model":"m","messages":[{"role":"user","content":[null]}]}"#,
        br#"{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[null]}"#,
        br#"{"model":"m","messages":[{"role":"user","content":"x"}],"n":1e999}"#,
        br#"{"model":"+++","messages":[{"role":"user","content":"x"}]}"#,
        deep.as_bytes(),
    ] {
        let answer = call(&sim, "POST", "/v1/chat/completions", &head, body).await;
        assert!(
            (400..500).contains(&answer.status),
            "{}",
            String::from_utf8_lossy(body)
        );
        assert!(answer.json()["error"]["message"].is_string());
    }
    assert!(is_alive(&sim).await);
}

#[tokio::test]
async fn odd_json_is_refused_by_every_protocol() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let head = format!(
        "x-api-key: {KEY}\r\nanthropic-version: 2023-06-01\r\nauthorization: Bearer {KEY}\r\n"
    );
    let deep = format!("{{\"model\":\"m\",\"input\":{}", "[".repeat(100_000));
    for (path, required) in [
        ("/v1/responses", r#""input""#),
        ("/v1/messages", r#""max_tokens":9,"messages""#),
    ] {
        for body in [
            "\u{fe}".to_owned(),
            "[]".to_owned(),
            "{}".to_owned(),
            "null".to_owned(),
            deep.clone(),
            r#"{"model":{}}"#.to_owned(),
            r#"{"model":""}"#.to_owned(),
            format!(r#"{{"model":"m",{required}:{{}}}}"#),
            format!(r#"{{"model":"m",{required}:[null]}}"#),
            format!(r#"{{"model":"m",{required}:[[]]}}"#),
            format!(r#"{{"model":"m",{required}:[{{"role":"user"}}]}}"#),
            format!(r#"{{"model":"m",{required}:[{{"role":"user","content":[null]}}]}}"#),
            format!(r#"{{"model":"m",{required}:[{{"role":"user","content":[{{"type":7}}]}}]}}"#),
            format!(
                r#"{{"model":"m","tools":[null],{required}:[{{"role":"user","content":"x"}}]}}"#
            ),
            format!(
                r#"{{"model":"m","stream":"yes",{required}:[{{"role":"user","content":"x"}}]}}"#
            ),
            format!(
                r#"{{"model":"m","temperature":1e999,{required}:[{{"role":"user","content":"x"}}]}}"#
            ),
            format!(
                r#"{{"model":"+++","temperature":"x",{required}:[{{"role":"user","content":"x"}}]}}"#
            ),
        ] {
            let answer = call(&sim, "POST", path, &head, body.as_bytes()).await;
            assert!((400..500).contains(&answer.status), "{path} {body}");
            assert!(answer.json()["error"]["message"].is_string());
        }
    }
    assert!(is_alive(&sim).await);
}

#[tokio::test]
async fn oversized_bodies_are_refused() {
    let settings = Settings {
        request_bytes_max: 1000,
        ..Settings::default()
    };
    let sim = Sim::start_with("127.0.0.1:0", settings).await.unwrap();
    let request =
        json!({"model": "sim-chat", "messages": [{"role": "user", "content": "x".repeat(2000)}]});
    assert_eq!(chat(&sim, &request).await.status, 413);
    let refused = messages(&sim, &request).await;
    assert_eq!(refused.status, 413);
    assert_eq!(refused.json()["error"]["type"], "request_too_large");
    assert!(is_alive(&sim).await);
}

#[tokio::test]
async fn strange_prompts_are_answered() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    for content in [
        "",
        "\u{0}",
        "\u{2028}\u{85}",
        "{",
        "\"",
        "in 99999999999999999999 words",
        "count to 18446744073709551615",
        "🦀🦀🦀 my name is",
        "name=",
    ] {
        let request =
            json!({"model": "sim-chat", "messages": [{"role": "user", "content": content}]});
        assert_eq!(chat(&sim, &request).await.status, 200, "{content:?}");
    }
    let schema = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
    let request = json!({"model": "sim-chat", "messages": [{"role": "user", "content": "x"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}});
    let answer: Value = chat(&sim, &request).await.json();
    assert!(answer["choices"][0]["message"]["content"].is_string());
}
