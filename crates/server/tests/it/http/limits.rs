//! Input limits: size, encoding, duration and number of requests (L1, L2, L3, L4, L6, L7, L11).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{
    CannedUpstream, Connection, GatewayBuilder, Request, TestGateway, ask, eventually, with,
};

const BODY_MAX: usize = 10_000;

/// A chat body of exactly this many bytes.
fn body_of(bytes: usize) -> Vec<u8> {
    let empty = ask("").to_string().len();
    ask(&"x".repeat(bytes - empty)).to_string().into_bytes()
}

fn chunked(body: &[u8], piece: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for part in body.chunks(piece) {
        out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

#[tokio::test]
async fn a_body_above_its_limit_is_refused_before_it_is_read() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", &format!("body_text_bytes = {BODY_MAX}"))
        .funded()
        .await;
    let post = || Request::post("/v1/chat/completions").bearer(&key.secret);
    gateway.send(&post().body(body_of(BODY_MAX))).await.ok();
    let above = gateway.send(&post().body(body_of(BODY_MAX + 1))).await;
    assert_eq!(above.failure(), (413, "request_too_large".to_owned()));

    // The announced length is enough for the refusal: no byte of the body has been sent.
    let mut connection = Connection::open(gateway.address()).await;
    let claim = post().header("content-length", &(BODY_MAX + 1).to_string());
    connection.write(&claim.head()).await;
    let refused = connection.answer().await;
    assert_eq!(refused.failure(), (413, "request_too_large".to_owned()));

    // Without an announced length, the gateway counts the bytes.
    let request = post().header("transfer-encoding", "chunked");
    gateway
        .send(&request.clone().body(chunked(&body_of(BODY_MAX), 999)))
        .await
        .ok();
    let above = gateway
        .send(&request.body(chunked(&body_of(BODY_MAX + 1), 999)))
        .await;
    assert_eq!(above.failure(), (413, "request_too_large".to_owned()));
    assert_eq!(gateway.upstream_calls(), 2);
    assert_eq!(gateway.frozen(&key).await, 0);
}

/// L2: unread bytes of a refused body are never taken for the next request.
#[tokio::test]
async fn a_refused_body_does_not_become_a_request() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", &format!("body_text_bytes = {BODY_MAX}"))
        .funded()
        .await;
    let inner = Request::get("/v1/balance").bearer(&key.secret).bytes();
    for size in [BODY_MAX + 1, 200_000, 5_000_000] {
        let mut body = inner.repeat(size / inner.len());
        body.resize(size, b' ');
        let mut connection = Connection::open(gateway.address()).await;
        let request = Request::post("/v1/chat/completions")
            .bearer(&key.secret)
            .body(body);
        connection.send(&request).await;
        connection.send(&Request::get("/v1/nothing")).await;
        // If much of the body is left unread, a reset may overtake the answer.
        if let Some(answer) = connection.try_answer().await {
            assert_eq!(answer.failure(), (413, "request_too_large".to_owned()));
        }
        // The gateway has either skipped the whole body or closed the connection.
        if let Some(next) = connection.try_answer().await {
            assert_eq!(
                next.status(),
                404,
                "{size}: the body was taken for a request"
            );
        }
    }
    gateway.chat(&key, &ask("hello")).await.ok();
}

/// L6: compressed bodies are refused. An endpoint for JSON refuses multipart forms, and accepts JSON with any other
/// content type.
#[tokio::test]
async fn encodings_and_forms_are_refused_and_forgotten_headers_are_not() {
    let (gateway, key) = TestGateway::funded().await;
    let body = ask("say exactly: read").to_string();
    let post = || {
        Request::post("/v1/chat/completions")
            .bearer(&key.secret)
            .body(body.as_str())
    };
    for (name, value) in [
        ("content-encoding", "gzip"),
        ("content-encoding", "br"),
        ("content-encoding", "identity, gzip"),
        ("content-type", "multipart/form-data; boundary=x"),
        ("content-type", "Multipart/Mixed"),
    ] {
        let answer = gateway.send(&post().header(name, value)).await;
        assert_eq!(
            answer.failure(),
            (415, "unsupported_media_type".to_owned()),
            "{value}"
        );
    }
    assert_eq!(gateway.upstream_calls(), 0);
    for (name, value) in [
        ("content-encoding", "identity"),
        ("content-type", "text/plain"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("content-type", "application/json; charset=utf-8"),
        ("x-nothing", "set"),
    ] {
        gateway.send(&post().header(name, value)).await.ok();
    }
}

#[tokio::test]
async fn heads_have_their_bounds() {
    let (gateway, key) = TestGateway::funded().await;
    let get = |target: &str| Request::get(target).bearer(&key.secret);
    let models = || get("/v1/models");
    let filled = |bytes: usize| "v".repeat(bytes);

    let longest = format!("/v1/models?x={}", filled(8192 - 13));
    gateway.send(&get(&longest)).await.ok();
    let answer = gateway.send(&get(&format!("{longest}x"))).await;
    assert_eq!(answer.status(), 414);

    gateway
        .send(&models().header("x-one", &filled(16_000)))
        .await
        .ok();
    assert_eq!(
        gateway
            .send(&models().header("x-one", &filled(16_384)))
            .await
            .status(),
        431
    );
    let many =
        |count: usize| (0..count).fold(models(), |it, index| it.header(&format!("x-{index}"), "v"));
    gateway.send(&many(90)).await.ok();
    assert_eq!(gateway.send(&many(101)).await.status(), 431);
    let heavy = (0..4).fold(models(), |it, index| {
        it.header(&format!("x-{index}"), &filled(10_000))
    });
    assert_eq!(gateway.send(&heavy).await.status(), 431);
    let enormous = models().header("x-one", &filled(300_000));
    let mut connection = Connection::open(gateway.address()).await;
    connection.send(&enormous).await;
    if let Some(answer) = connection.try_answer().await {
        assert_eq!(answer.status(), 431);
    }
    gateway.send(&models()).await.ok();
}

/// L4: a node without memory for a body refuses it before reading it.
#[tokio::test]
async fn a_node_without_room_for_bodies_says_so() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "body_memory_bytes = 20000")
        .funded()
        .await;
    let post = |bytes: usize| {
        Request::post("/v1/chat/completions")
            .bearer(&key.secret)
            .body(body_of(bytes))
    };
    let refused = gateway.send(&post(20_001)).await;
    assert_eq!(refused.failure(), (503, "service_unavailable".to_owned()));
    assert!(refused.header("retry-after").is_some());
    // Each call returns its memory when it ends.
    for _ in 0..5 {
        gateway.send(&post(15_000)).await.ok();
    }
}

/// L7: a connection ends if its headers arrive too slowly, or if it stays silent.
#[tokio::test]
async fn slow_heads_and_silent_connections_are_ended() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "client_header_ms = 300")
        .setting("timeouts", "client_keep_alive_ms = 300")
        .funded()
        .await;
    let mut silent = Connection::open(gateway.address()).await;
    let mut trickling = Connection::open(gateway.address()).await;
    trickling
        .write(b"GET /v1/models HTTP/1.1\r\nhost: g\r\nx-slow: ")
        .await;
    let mut served = Connection::open(gateway.address()).await;
    served
        .send(&Request::get("/v1/models").bearer(&key.secret))
        .await;
    served.answer().await.ok();

    let start = Instant::now();
    let trickle = async {
        // One byte at a time, until the server answers or closes.
        while start.elapsed() < Duration::from_secs(60) {
            trickling.write(b"v").await;
            // The pause is necessary, because the head must arrive slowly.
            tokio::time::sleep(Duration::from_millis(50)).await;
            if tokio::time::timeout(Duration::from_millis(1), trickling.try_answer())
                .await
                .is_ok()
            {
                return;
            }
        }
    };
    let (silent, (), served) = tokio::join!(silent.try_answer(), trickle, served.is_closed());
    assert!(silent.is_none_or(|answer| answer.status() == 408));
    assert!(served, "an idle connection is closed");
    assert!(
        start.elapsed() < Duration::from_secs(9),
        "{:?}",
        start.elapsed()
    );
    gateway.get(&key, "/v1/models").await.ok();
}

#[tokio::test]
async fn a_slow_body_is_a_408() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "client_body_idle_ms = 200")
        .setting("timeouts", "client_body_total_ms = 600")
        .funded()
        .await;
    let head = Request::post("/v1/chat/completions")
        .bearer(&key.secret)
        .header("content-length", "500")
        .head();
    let mut silent = Connection::open(gateway.address()).await;
    silent.write(&head).await;
    silent.write(b"{\"model\":").await;
    let start = Instant::now();
    assert_eq!(
        silent.answer().await.failure(),
        (408, "request_timeout".to_owned())
    );
    assert!(start.elapsed() >= Duration::from_millis(190));

    // Occasional bytes keep the body from being idle, but there is a limit for its total time too.
    let mut trickling = Connection::open(gateway.address()).await;
    trickling.write(&head).await;
    for _ in 0..8 {
        trickling.write(b" ").await;
        // Half of the idle timeout.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(
        trickling.answer().await.failure(),
        (408, "request_timeout".to_owned())
    );
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.frozen(&key).await, 0);
}

#[tokio::test]
async fn connections_are_bounded_by_address() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "connections_per_address = 4")
        .funded()
        .await;
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::open(gateway.address()).await;
        connection
            .send(&Request::get("/v1/models").bearer(&key.secret))
            .await;
        connection.answer().await.ok();
        held.push(connection);
    }
    let mut above = Connection::open(gateway.address()).await;
    above
        .send(&Request::get("/v1/models").bearer(&key.secret))
        .await;
    assert!(above.try_answer().await.is_none());
    drop(held);
    eventually("room again", async || {
        let mut connection = Connection::open(gateway.address()).await;
        connection
            .send(&Request::get("/v1/models").bearer(&key.secret))
            .await;
        connection
            .try_answer()
            .await
            .filter(|answer| answer.status() == 200)
    })
    .await;
}

/// Overload: calls are refused before their body is read and before a hold is opened.
#[tokio::test]
async fn calls_above_the_nodes_bound_are_refused() {
    let canned = CannedUpstream::paused("{\"choices\":[{\"index\":0,\"message\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}").await;
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "requests_in_flight = 2")
        .entries(&canned.entries())
        .funded()
        .await;
    let body = with(
        ask("hello"),
        &json!({ "model": crate::harness::CANNED_MODEL }),
    );
    let first = gateway.chat(&key, &body);
    let second = gateway.chat(&key, &body);
    let above = async {
        canned.wait_for_requests(2).await;
        let refused = gateway.chat(&key, &body).await;
        // Requests that only read are still answered.
        gateway.balance(&key).await;
        gateway.get(&key, "/v1/models").await.ok();
        canned.release_answers();
        refused
    };
    let (first, second, above) = tokio::join!(first, second, above);
    assert_eq!(above.failure(), (503, "service_unavailable".to_owned()));
    assert!(above.header("retry-after").is_some());
    first.ok();
    second.ok();
    assert_eq!(canned.bodies().len(), 2);
}

#[tokio::test]
async fn a_converted_request_of_very_many_parts_is_refused_or_charged() {
    let entries = "[[channel]]
        name = \"other\"
        preset = \"sim\"
        base_url = \"http://SIM/v1\"
        protocols = [\"messages\"]
        [[model]]
        id = \"maker/other\"
        kind = \"text\"
        routes = [{ channel = \"other\", model = \"sim-chat\" }]
        price = { input = \"1\", output = \"2\" }
        profile = { context_tokens = 4000000, max_output_tokens = 1000 }";
    let (gateway, key) = GatewayBuilder::default()
        .entries(entries)
        .setting("limits", "body_memory_bytes = 8000000")
        .funded()
        .await;
    // A message of one letter takes about 700 bytes of memory: 5,000 messages fit into the limit, 20,000 do not.
    for (messages, status) in [(5_000, 200), (20_000, 503), (100_001, 400), (5_000, 200)] {
        let messages = vec![json!({ "role": "user", "content": "a" }); messages];
        let body = json!({ "model": "maker/other", "messages": messages });
        let answer = gateway.chat(&key, &body).await;
        assert_eq!(answer.status(), status, "{}", answer.text());
    }
}
