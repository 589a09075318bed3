//! Hostile and malformed bytes on the public port: the answer is a 4xx or a close, never a 5xx, and the server keeps
//! serving.

use crate::harness::{Connection, Request, TestGateway, ask, eventually};

/// Header lines and bodies of requests whose end is ambiguous, or whose headers are invalid. These requests have no
/// other fault.
fn ambiguous_requests(body: &str) -> Vec<(String, String)> {
    let length = body.len();
    let chunk = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let chunked = "Transfer-Encoding: chunked\r\n";
    let lengths = [
        format!(
            "Content-Length: {length}\r\nContent-Length: {}\r\n",
            length + 1
        ),
        format!("Content-Length: {length}, {}\r\n", length - 1),
        format!("Content-Length: +{length}\r\n"),
        "Content-Length: -1\r\n".to_owned(),
        "Content-Length: 0x10\r\n".to_owned(),
        "Content-Length: 99999999999999999999999\r\n".to_owned(),
    ];
    let codings = [
        "Transfer-Encoding: gzip, zip\r\n".to_owned(),
        "Transfer-Encoding: chunked, gzip\r\n".to_owned(),
        "Transfer-Encoding: gzip, chunked\r\n".to_owned(),
        format!("{chunked}{chunked}"),
        format!("{chunked}Content-Length: {length}\r\n"),
        format!("content-length: {}\r\n{chunked}", chunk.len()),
    ];
    let chunks = [
        format!("zz\r\n{body}"),
        format!("-{length:x}\r\n{body}"),
        format!("ffffffffffffffff1\r\n{body}"),
        format!("{length:x}\r\n{body}xx"),
    ];
    let names = [
        "X-Odd : v",
        "X-Odd: v\r\n w",
        "X-Odd: a\0b",
        "X-Odd: a\rb",
        ": v",
        "X Odd: v",
    ];
    let lengths = lengths.map(|headers| (headers, body.to_owned()));
    let codings = codings.map(|headers| (headers, chunk.clone()));
    let chunks = chunks.map(|sent| (chunked.to_owned(), format!("{sent}\r\n0\r\n\r\n")));
    let names = names.map(|line| {
        let headers = format!("{line}\r\nContent-Length: {length}\r\n");
        (headers, body.to_owned())
    });
    lengths
        .into_iter()
        .chain(codings)
        .chain(chunks)
        .chain(names)
        .collect()
}

/// Bytes that are not an HTTP/1.1 request.
fn malformed_requests() -> Vec<(String, Vec<u8>)> {
    [
        ("no version", b"GET /v1/models\r\n\r\n".to_vec()),
        (
            "an unknown version",
            b"GET /v1/models HTTP/3.7\r\nHost: g\r\n\r\n".to_vec(),
        ),
        (
            "a space in the target",
            b"GET /v1/mo dels HTTP/1.1\r\nHost: g\r\n\r\n".to_vec(),
        ),
        (
            "another protocol",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        ),
        (
            "half of HTTP/2",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnothing of it".to_vec(),
        ),
        ("noise", (0..=255).cycle().take(4096).collect()),
        ("zeros", vec![0; 65_536]),
        ("an endless line", vec![b'a'; 400_000]),
        ("line ends", b"\r\n\r\n\r\n\n\n".repeat(1000)),
    ]
    .map(|(what, bytes)| (what.to_owned(), bytes))
    .into()
}

#[tokio::test]
async fn malformed_messages_are_refused_and_close_their_connection() {
    let (gateway, key) = TestGateway::funded().await;
    let ambiguous = ambiguous_requests(&ask("hello").to_string()).into_iter().map(|(headers, body)| {
        let message = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {}\r\n{headers}\r\n{body}",
            key.secret
        );
        (headers, message.into_bytes())
    });
    for (what, message) in ambiguous.chain(malformed_requests()) {
        let mut connection = Connection::open(gateway.address()).await;
        connection.write(&message).await;
        // The gateway refuses bad headers and bad chunks immediately, and closes the connection. For other messages it
        // may wait for more bytes, so end the request.
        let is_refused = what.contains(':');
        if !is_refused {
            connection.finish().await;
        }
        let bytes = connection.rest().await;
        let text = String::from_utf8_lossy(&bytes);
        let answers: Vec<_> = text.split("HTTP/1.1 ").skip(1).collect();
        assert!(!is_refused || answers.len() == 1, "{what}: {answers:?}");
        if what != "half of HTTP/2" {
            for answer in answers {
                assert!(answer.starts_with('4'), "{what}: {answer}");
            }
        }
    }
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.verify().await;
}

/// L2: if the end of a message is ambiguous, the bytes after it are not served as another request.
#[tokio::test]
async fn nothing_behind_a_doubtful_message_is_served() {
    let (gateway, key) = TestGateway::funded().await;
    let smuggled = Request::get("/v1/balance").bearer(&key.secret).bytes();
    let body = ask("hello").to_string();
    let length = body.len();
    let chunks = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    for (framing, body) in [
        (
            format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
            &chunks,
        ),
        (
            format!("Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n"),
            &chunks,
        ),
        (
            format!(
                "Content-Length: {length}\r\nContent-Length: {}\r\n",
                length + 1
            ),
            &body,
        ),
        ("Transfer-Encoding: xchunked\r\n".to_owned(), &chunks),
    ] {
        let mut message = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {}\r\n{framing}\r\n{body}",
            key.secret
        )
        .into_bytes();
        message.extend_from_slice(&smuggled);
        let mut connection = Connection::open(gateway.address()).await;
        connection.write(&message).await;
        let answer = connection.answer().await;
        assert!(
            (400..500).contains(&answer.status()),
            "{framing}: {answer:?}"
        );
        assert!(connection.is_closed().await, "{framing}");
    }
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (gateway, key) = TestGateway::funded().await;
    let mut bytes = Vec::new();
    for count in 1..=10 {
        let body = ask(&format!("say exactly: number {count}"));
        bytes.extend(Request::chat(&body).bearer(&key.secret).bytes());
    }
    bytes.extend(Request::get("/v1/nothing").bytes());
    bytes.extend(Request::get("/v1/balance").bearer(&key.secret).bytes());
    let mut connection = Connection::open(gateway.address()).await;
    connection.write(&bytes).await;
    for count in 1..=10 {
        let answer = connection.answer().await.ok().json();
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        assert_eq!(text, format!("number {count}"));
    }
    assert_eq!(connection.answer().await.status(), 404);
    connection.answer().await.ok();
}

#[tokio::test]
async fn a_client_that_asks_before_it_sends_is_told_to_go_on() {
    let (gateway, key) = TestGateway::funded().await;
    let body = ask("say exactly: continued").to_string();
    let request = Request::post("/v1/chat/completions")
        .bearer(&key.secret)
        .header("expect", "100-continue")
        .body(body.as_str());
    let mut connection = Connection::open(gateway.address()).await;
    connection.write(&request.head()).await;
    connection.interim().await;
    connection.write(body.as_bytes()).await;
    let answer = connection.answer().await.ok().json();
    assert_eq!(answer["choices"][0]["message"]["content"], "continued");
}

/// HTTP does not say whether a half-closed client has left. The gateway may answer such a client or drop it, but must
/// charge the call correctly.
#[tokio::test]
async fn a_half_closed_client_is_answered_or_let_go() {
    let (gateway, key) = TestGateway::funded().await;
    let mut connection = Connection::open(gateway.address()).await;
    let request = Request::chat(&ask("say exactly: heard")).bearer(&key.secret);
    connection.send(&request).await;
    connection.finish().await;
    if let Some(answer) = connection.try_answer().await {
        assert_eq!(
            answer.ok().json()["choices"][0]["message"]["content"],
            "heard"
        );
    }
    eventually("the close of its hold", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    let charged = gateway.usage(&key).await > 0;
    assert_eq!(charged, gateway.upstream_calls() > 0);
    gateway.verify().await;
}

#[tokio::test]
async fn broken_off_requests_leave_nothing_behind() {
    let (gateway, key) = TestGateway::funded().await;
    let request = Request::chat(&ask("hello")).bearer(&key.secret).bytes();
    for length in (1..request.len()).step_by(17) {
        let mut connection = Connection::open(gateway.address()).await;
        connection.write(&request[..length]).await;
        drop(connection);
    }
    assert_eq!(gateway.chat(&key, &ask("hello")).await.status(), 200);
    assert_eq!(gateway.upstream_calls(), 1);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

/// The statuses of all answers until the server closes the connection.
async fn statuses(gateway: &TestGateway, bytes: &[u8]) -> Vec<u16> {
    let mut connection = Connection::open(gateway.address()).await;
    connection.write(bytes).await;
    let mut statuses = Vec::new();
    while let Some(answer) = connection.try_answer().await {
        let is_last = answer.header("connection") == Some("close");
        statuses.push(answer.status());
        if is_last {
            assert!(connection.is_closed().await, "nothing comes behind a close");
            break;
        }
    }
    statuses
}

/// A malformed request that follows others in the same read is refused, and nothing after it is served.
#[tokio::test]
async fn a_doubtful_message_is_refused_wherever_it_stands() {
    let (gateway, key) = TestGateway::funded().await;
    let body = ask("hello").to_string();
    let length = body.len();
    let chunks = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let good = Request::get("/v1/balance").bearer(&key.secret).bytes();
    for (host, framing, body) in [
        (
            "Host: g\r\n",
            format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
            &chunks,
        ),
        (
            "Host: g\r\n",
            format!("Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n"),
            &chunks,
        ),
        (
            "Host: g\r\n",
            format!("Content-Length: {length}\r\nContent-Length: {length}\r\n"),
            &body,
        ),
        (
            "Host: g\r\n",
            "Transfer-Encoding: gzip, chunked\r\n".to_owned(),
            &chunks,
        ),
        (
            "Host: g\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n".to_owned(),
            &chunks,
        ),
        ("", format!("Content-Length: {length}\r\n"), &body),
        (
            "Host: g\r\nHost: h\r\n",
            format!("Content-Length: {length}\r\n"),
            &body,
        ),
    ] {
        let ambiguous = format!(
            "POST /v1/chat/completions HTTP/1.1\r\n{host}Authorization: Bearer {}\r\n{framing}\r\n{body}",
            key.secret
        );
        let ambiguous = ambiguous.as_bytes();
        let case = format!("{host}{framing}");
        let first = [ambiguous, &good].concat();
        assert_eq!(statuses(&gateway, &first).await, [400], "{case}");
        let third = [&good, &good, ambiguous, &good].concat();
        assert_eq!(statuses(&gateway, &third).await, [200, 200, 400], "{case}");
    }
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.frozen(&key).await, 0);
}

/// A body that looks like the HTTP/2 preface does not switch the connection to HTTP/2.
#[tokio::test]
async fn a_body_does_not_change_how_the_next_head_is_read() {
    let (gateway, key) = TestGateway::funded().await;
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut connection = Connection::open(gateway.address()).await;
    let request = Request::post("/v1/chat/completions")
        .bearer(&key.secret)
        .header("expect", "100-continue")
        .header("content-length", &preface.len().to_string());
    connection.write(&request.head()).await;
    // The body is sent only after the interim answer, so it arrives in a read of its own.
    connection.interim().await;
    connection.write(preface.as_bytes()).await;
    assert_eq!(connection.answer().await.status(), 400, "it is no JSON");
    let ambiguous = "GET /v1/models HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    connection.write(ambiguous.as_bytes()).await;
    let refused = connection.answer().await;
    assert_eq!(refused.failure(), (400, "invalid_request".to_owned()));
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn http_1_0_needs_no_host() {
    let (gateway, key) = TestGateway::funded().await;
    let head = format!(
        "GET /v1/models HTTP/1.0\r\nAuthorization: Bearer {}\r\n\r\n",
        key.secret
    );
    let mut connection = Connection::open(gateway.address()).await;
    connection.write(head.as_bytes()).await;
    let bytes = connection.rest().await;
    assert!(String::from_utf8_lossy(&bytes).contains(" 200 OK\r\n"));
}
