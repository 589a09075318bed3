//! HTTP/2: clients that read nothing, and many streams of one key (L11, S4).

use http_body_util::Full;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{
    CANNED_MODEL, CannedUpstream, GatewayBuilder, Http2, TestGateway, ask, eventually, take_rest,
    with, within,
};

const WHOLE: &str = r#"{"choices":[{"index":0,"message":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;

/// Makes two calls, which fill both request slots of the node, and reads neither answer.
async fn fill_request_slots(
    gateway: &TestGateway,
    key: &crate::harness::Key,
    streamed: bool,
) -> Vec<impl Sized + use<>> {
    let connection = Http2::open(gateway.address(), 0).await;
    let body = with(ask("reply with 40 words"), &json!({ "stream": streamed }));
    let mut answers = Vec::new();
    for _ in 0..2 {
        answers.push((connection.chat(key, &body).await, connection.clone()));
    }
    answers
}

async fn wait_until_admitted(gateway: &TestGateway, key: &crate::harness::Key) {
    eventually("a place for others", async || {
        let answer = gateway.chat(key, &ask("hello")).await;
        (answer.status() == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_settled_keeps_no_place() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "requests_in_flight = 2")
        .funded()
        .await;
    let answers = fill_request_slots(&gateway, &key, false).await;
    wait_until_admitted(&gateway, &key).await;
    drop(answers);
    gateway.verify().await;
}

/// S4: a stream ends if its data waits too long for a client that reads nothing.
#[tokio::test]
async fn a_stream_with_a_closed_window_is_ended() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "requests_in_flight = 2")
        .setting("timeouts", "client_write_idle_ms = 500")
        .setting("timeouts", "client_gone_drain_ms = 100")
        .funded()
        .await;
    gateway
        .sim
        .queue_faults("sim-chat", "reply-bytes=400000+chunks=400", 2)
        .unwrap();
    let answers = fill_request_slots(&gateway, &key, true).await;
    wait_until_admitted(&gateway, &key).await;
    eventually("the settlement of both", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    drop(answers);
    gateway.verify().await;
}

#[tokio::test]
async fn a_stalled_stream_leaves_its_neighbours_alone() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "client_write_idle_ms = 500")
        .setting("timeouts", "client_gone_drain_ms = 100")
        .funded()
        .await;
    let connection = Http2::open(gateway.address(), 65_535).await;
    gateway
        .sim
        .queue_faults("sim-chat", "reply-bytes=400000+chunks=400", 1)
        .unwrap();
    let stalled = connection
        .chat(&key, &with(ask("go"), &json!({ "stream": true })))
        .await;
    eventually("its end", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    assert!(take_rest(stalled).await.is_err(), "it was reset");
    let answer = connection.chat(&key, &ask("say exactly: still here")).await;
    assert_eq!(answer.status(), 200);
    let body = take_rest(answer).await.unwrap();
    assert!(body.windows(10).any(|it| it == b"still here"));
    gateway.verify().await;
}

/// The write timeout applies to each piece of an answer. An answer of several pieces arrives whole.
#[tokio::test]
async fn large_answers_arrive_whole() {
    let text = "x".repeat(700_001);
    let canned = CannedUpstream::json(&WHOLE.replace("\"x\"", &format!("\"{text}\""))).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let connection = Http2::open(gateway.address(), 65_535).await;
    let body = with(ask("hello"), &json!({ "model": CANNED_MODEL }));
    let answer = connection.chat(&key, &body).await;
    let length: usize = answer.headers()["content-length"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let body = take_rest(answer).await.unwrap();
    assert_eq!(body.len(), length);
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], text);
}

#[tokio::test]
async fn requests_of_one_key_are_bounded() {
    let canned = CannedUpstream::paused(WHOLE).await;
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "requests_in_flight_per_key = 3")
        .entries(&canned.entries())
        .funded()
        .await;
    let other = gateway.key("w", &[]).await;
    let connection = Http2::open(gateway.address(), 65_535).await;
    let body = with(ask("hello"), &json!({ "model": CANNED_MODEL }));
    let above = async {
        canned.wait_for_requests(3).await;
        let refused = gateway.chat(&key, &body).await;
        let another = async {
            canned.wait_for_requests(4).await;
            canned.release_answers();
        };
        let (served, ()) = tokio::join!(gateway.chat(&other, &body), another);
        served.ok();
        refused
    };
    let call = || connection.chat(&key, &body);
    let (one, two, three, refused) = tokio::join!(call(), call(), call(), above);
    assert_eq!(
        refused.failure(),
        (429, "concurrency_limit_exceeded".to_owned())
    );
    for answer in [one, two, three] {
        assert_eq!(answer.status(), 200);
        take_rest(answer).await.unwrap();
    }
    wait_until_admitted(&gateway, &key).await;
}

/// A client that disappeared without closing the connection is detected by unanswered pings.
#[tokio::test]
async fn a_connection_that_answers_no_ping_is_closed() {
    const PING: u8 = 6;
    let gateway = GatewayBuilder::default()
        .setting("timeouts", "client_ping_ms = 200")
        .setting("timeouts", "client_ping_answer_ms = 200")
        .setting("timeouts", "client_header_ms = 600000")
        .start()
        .await;
    let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    socket
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    socket.write_all(&settings).await.unwrap();
    let mut frames = Vec::new();
    let read = within("the close", socket.read_to_end(&mut frames)).await;
    read.unwrap();
    let mut kinds = Vec::new();
    let mut rest = frames.as_slice();
    while let [a, b, c, kind, ..] = rest {
        kinds.push(*kind);
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        rest = &rest[9 + length..];
    }
    assert!(kinds.contains(&PING), "{kinds:?}");
}

/// The name of each serving thread, and how many times it has gone to sleep.
fn sleeps_of_serving_threads(pid: u32) -> Vec<(String, u64)> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut found = Vec::new();
    for thread in threads {
        let folder = thread.unwrap().path();
        let name = std::fs::read_to_string(folder.join("comm")).unwrap();
        let status = std::fs::read_to_string(folder.join("status")).unwrap();
        let sleeps = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .unwrap();
        if name.starts_with("serve-") {
            found.push((name.trim().to_owned(), sleeps.trim().parse().unwrap()));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn many_streams_of_one_connection_are_spread_over_the_threads() {
    let canned = CannedUpstream::paused(WHOLE).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let connection = Http2::open(gateway.address(), 65_535).await;
    let body = with(ask("hello"), &json!({ "model": CANNED_MODEL }));
    let before = sleeps_of_serving_threads(gateway.pid());
    assert!(!before.is_empty());
    // The connection's own thread takes up to nine more streams than each of the other threads.
    let count = before.len() + 16;
    let calls = (0..count).map(|_| async {
        take_rest(connection.chat(&key, &body).await).await.unwrap();
    });
    let calls = futures_util::future::join_all(calls);
    let open = async {
        canned.wait_for_requests(count).await;
        canned.release_answers();
    };
    tokio::join!(calls, open);
    let after = sleeps_of_serving_threads(gateway.pid());
    assert_eq!(after.len(), before.len());
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        assert!(after > before, "{name} has slept through: {before}");
    }
}

#[tokio::test]
async fn headers_are_counted_as_in_http_1() {
    let (gateway, key) = TestGateway::funded().await;
    let connection = Http2::open(gateway.address(), 65_535).await;
    for (others, status) in [(99, 200), (100, 431)] {
        let mut request = http::Request::get("http://gateway/v1/models")
            .header("authorization", format!("Bearer {}", key.secret));
        for number in 0..others {
            request = request.header(format!("x-{number}"), "1");
        }
        let request = request.body(Full::default()).unwrap();
        let answer = connection.send(request).await;
        assert_eq!(answer.status(), status, "{others}");
    }
}
