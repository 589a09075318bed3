//! Tests the call log, and stopping the simulator.

use crate::client::{KEY, chat, get, post, send};
use serde_json::json;
use sim::{CallEnd, Settings, Sim};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

async fn ended(sim: &Sim) -> Vec<sim::Call> {
    let calls = sim.calls_until(|calls| {
        !calls.is_empty() && calls.iter().all(|call| call.end != CallEnd::Open)
    });
    tokio::time::timeout(Duration::from_secs(5), calls)
        .await
        .unwrap()
}

#[tokio::test]
async fn calls_are_shown_as_they_came() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let body = r#"{ "model":"sim-chat+no-usage", "messages":[{"role":"user","content":"hi"}] }"#;
    post(&sim, "/v1/chat/completions?x=1", body).await;
    ended(&sim).await;
    let shown = get(&sim, "/_sim/calls").await.json();
    let call = &shown["calls"][0];
    assert_eq!(call["text"], body);
    assert_eq!(call["body"]["messages"][0]["content"], "hi");
    assert_eq!(call["headers"]["authorization"], format!("Bearer {KEY}"));
    for (name, value) in [
        ("method", json!("POST")),
        ("path", json!("/v1/chat/completions")),
        ("query", json!("x=1")),
        ("model", json!("sim-chat")),
        ("faults", json!("no-usage")),
        ("status", json!(200)),
        ("end", json!("completed")),
    ] {
        assert_eq!(call[name], value, "{name}");
    }
    chat(&sim, &json!({"model": "sim-mini"})).await;
    ended(&sim).await;
    for (query, count) in [("", 2), ("?model=sim-mini", 1), ("?end=cancelled", 0)] {
        let counted = get(&sim, &format!("/_sim/calls/count{query}")).await.json();
        assert_eq!(
            (&counted["count"], &counted["received"]),
            (&json!(count), &json!(2)),
            "{query}"
        );
    }
    let head = "";
    crate::client::call(&sim, "DELETE", "/_sim/calls", head, b"").await;
    assert_eq!(get(&sim, "/_sim/calls").await.json(), json!({"calls": []}));
    assert_eq!(get(&sim, "/_sim/nothing").await.status, 404);
    assert_eq!(get(&sim, "/_sim/calls?colour=red").await.status, 400);
}

#[tokio::test]
async fn a_caller_that_goes_away_is_seen_at_its_byte() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let request = json!({"model": "sim-chat+chunks=1000+chunk-delay=20ms", "stream": true,
        "messages": [{"role": "user", "content": "hi"}]});
    let head = format!("authorization: Bearer {KEY}\r\n");
    let body = request.to_string();
    let mut stream = send(&sim, "POST", "/v1/chat/completions", &head, body.as_bytes()).await;
    let mut some = [0; 1000];
    stream.read_exact(&mut some).await.unwrap();
    assert_eq!(sim.stats().open, 1);
    drop(stream);
    let call = ended(&sim).await.remove(0);
    assert_eq!((call.end, call.status), (CallEnd::Cancelled, Some(200)));
    assert!(call.sent_bytes > 100 && call.sent_bytes < 100_000);
    assert_eq!((sim.stats().open, sim.stats().cancelled), (0, 1));
}

#[tokio::test]
async fn connections_are_kept_for_further_calls() {
    use tokio::io::AsyncWriteExt;
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(sim.address()).await.unwrap();
    for _ in 0..3 {
        let request = format!(
            "GET /v1/models/sim-chat HTTP/1.1\r\nhost: sim\r\nauthorization: Bearer {KEY}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"sim-org-4711\"}") {
            assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0);
        }
    }
    assert_eq!(sim.stats().completed, 3);
}

#[tokio::test]
async fn a_stopped_simulator_refuses_and_cuts() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let address = sim.address();
    let mut open = TcpStream::connect(address).await.unwrap();
    get(&sim, "/v1/models").await;
    sim.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
    assert_eq!(open.read(&mut [0; 1]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn the_pace_makes_streams_lively() {
    let settings = Settings {
        pace: Some(Duration::from_millis(5)),
        ..Settings::default()
    };
    let sim = Sim::start_with("127.0.0.1:0", settings).await.unwrap();
    let request = json!({"model": "sim-chat+chunks=11", "stream": true,
        "messages": [{"role": "user", "content": "hi"}]});
    let begun = std::time::Instant::now();
    chat(&sim, &request).await;
    assert!(begun.elapsed() >= Duration::from_millis(50));
}
