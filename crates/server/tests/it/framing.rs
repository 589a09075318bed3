//! Hostile and odd bytes on the public port: a 4xx or a close, never a 5xx, and the server goes on.

use crate::harness::{Connection, Request, Stage, ask, eventually};

#[tokio::test]
async fn malformed_messages_are_refused_and_close_their_connection() {
    let (stage, key) = Stage::funded().await;
    let body = ask("hello").to_string();
    let length = body.len();
    let auth = format!("Authorization: Bearer {}\r\n", key.secret);
    let post = |headers: &str, body: &str| {
        format!("POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\n{auth}{headers}\r\n{body}")
    };
    let chunk = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let messages: Vec<(&str, Vec<u8>)> = vec![
        (
            "length and chunks",
            post(
                &format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
                &chunk,
            )
            .into(),
        ),
        (
            "chunks and length",
            post(
                &format!("Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n"),
                &chunk,
            )
            .into(),
        ),
        (
            "two lengths",
            post(
                &format!(
                    "Content-Length: {length}\r\nContent-Length: {}\r\n",
                    length + 1
                ),
                &body,
            )
            .into(),
        ),
        (
            "a list of lengths",
            post(
                &format!("Content-Length: {length}, {}\r\n", length - 1),
                &body,
            )
            .into(),
        ),
        (
            "a negative length",
            post("Content-Length: -1\r\n", &body).into(),
        ),
        (
            "a signed length",
            post(&format!("Content-Length: +{length}\r\n"), &body).into(),
        ),
        (
            "a hex length",
            post("Content-Length: 0x10\r\n", &body).into(),
        ),
        (
            "an enormous length",
            post("Content-Length: 99999999999999999999999\r\n", &body).into(),
        ),
        (
            "an unknown coding",
            post("Transfer-Encoding: gzip, zip\r\n", &chunk).into(),
        ),
        (
            "chunked twice",
            post("Transfer-Encoding: chunked, gzip\r\n", &chunk).into(),
        ),
        (
            "a chunk size of letters",
            post("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n").into(),
        ),
        (
            "a negative chunk",
            post("Transfer-Encoding: chunked\r\n", "-2\r\n{}\r\n0\r\n\r\n").into(),
        ),
        (
            "an enormous chunk",
            post(
                "Transfer-Encoding: chunked\r\n",
                "ffffffffffffffff1\r\n{}\r\n0\r\n\r\n",
            )
            .into(),
        ),
        (
            "a chunk without its end",
            post("Transfer-Encoding: chunked\r\n", "2\r\n{}xx0\r\n\r\n").into(),
        ),
        (
            "a space before the colon",
            post("X-Odd : v\r\nContent-Length: 0\r\n", "").into(),
        ),
        (
            "a folded header",
            post("X-Odd: v\r\n w\r\nContent-Length: 0\r\n", "").into(),
        ),
        (
            "a null in a header",
            post("X-Odd: a\0b\r\nContent-Length: 0\r\n", "").into(),
        ),
        (
            "a bare return in a header",
            post("X-Odd: a\rb\r\nContent-Length: 0\r\n", "").into(),
        ),
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
        ("noise", (0..=255).cycle().take(4096).collect()),
        ("zeros", vec![0; 65_536]),
        ("an endless line", vec![b'a'; 400_000]),
        ("line ends", b"\r\n\r\n\r\n\n\n".repeat(1000)),
    ];
    for (what, message) in messages {
        let mut connection = Connection::open(stage.address()).await;
        connection.write(&message).await;
        connection.finish().await;
        while let Some(answer) = connection.try_answer().await {
            let status = answer.status();
            assert!((400..500).contains(&status), "{what}: {status}");
        }
        assert!(connection.is_closed().await, "{what}");
    }
    assert_eq!(stage.upstream_calls(), 0);
    assert_eq!(stage.frozen(&key).await, 0);
    stage.chat(&key, &ask("hello")).await.ok();
    stage.verify().await;
}

/// Limits, "framing": a message whose end is in doubt must not decide where the next one begins.
#[tokio::test]
async fn nothing_behind_a_doubtful_message_is_served() {
    let (stage, key) = Stage::funded().await;
    let smuggled = Request::get("/v1/balance").bearer(&key.secret).bytes();
    for framing in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: xchunked\r\n",
    ] {
        let mut message = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {}\r\n{framing}\r\n0\r\n\r\n",
            key.secret
        )
        .into_bytes();
        message.extend_from_slice(&smuggled);
        let mut connection = Connection::open(stage.address()).await;
        connection.write(&message).await;
        connection.finish().await;
        let mut answers = Vec::new();
        while let Some(answer) = connection.try_answer().await {
            answers.push(answer.status());
        }
        assert!(answers.len() <= 1, "{framing}: {answers:?}");
        assert!(
            answers.iter().all(|status| (400..500).contains(status)),
            "{framing}: {answers:?}"
        );
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (stage, key) = Stage::funded().await;
    let mut bytes = Vec::new();
    for count in 1..=10 {
        let body = ask(&format!("say exactly: number {count}"));
        bytes.extend(Request::chat(&body).bearer(&key.secret).bytes());
    }
    bytes.extend(Request::get("/v1/nothing").bytes());
    bytes.extend(Request::get("/v1/balance").bearer(&key.secret).bytes());
    let mut connection = Connection::open(stage.address()).await;
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
    let (stage, key) = Stage::funded().await;
    let body = ask("say exactly: continued").to_string();
    let request = Request::post("/v1/chat/completions")
        .bearer(&key.secret)
        .header("expect", "100-continue")
        .body(body.as_str());
    let mut connection = Connection::open(stage.address()).await;
    connection.write(&request.head()).await;
    connection.interim().await;
    connection.write(body.as_bytes()).await;
    let answer = connection.answer().await.ok().json();
    assert_eq!(answer["choices"][0]["message"]["content"], "continued");
}

/// Whether a half-closed client has gone is HTTP's old riddle. Either reading is good, as long as
/// it is answered or let go, and pays what its call has cost.
#[tokio::test]
async fn a_half_closed_client_is_answered_or_let_go() {
    let (stage, key) = Stage::funded().await;
    let mut connection = Connection::open(stage.address()).await;
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
        (stage.frozen(&key).await == 0).then_some(())
    })
    .await;
    let charged = stage.usage(&key).await > 0;
    assert_eq!(charged, stage.upstream_calls() > 0);
    stage.verify().await;
}

#[tokio::test]
async fn broken_off_requests_leave_nothing_behind() {
    let (stage, key) = Stage::funded().await;
    let request = Request::chat(&ask("hello")).bearer(&key.secret).bytes();
    for length in (1..request.len()).step_by(17) {
        let mut connection = Connection::open(stage.address()).await;
        connection.write(&request[..length]).await;
        drop(connection);
    }
    assert_eq!(stage.chat(&key, &ask("hello")).await.status(), 200);
    assert_eq!(stage.upstream_calls(), 1);
    assert_eq!(stage.frozen(&key).await, 0);
    stage.verify().await;
}
