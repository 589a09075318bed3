//! A small HTTP client that returns the received bytes and how the connection ended.

use serde_json::Value;
use sim::Sim;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const KEY: &str = "sim-good-key";
/// A PNG of one pixel, as base64.
pub(crate) const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(crate) async fn start() -> Sim {
    Sim::start("127.0.0.1:0").await.unwrap()
}

/// The request with these members added or replaced.
pub(crate) fn with(mut request: Value, members: Value) -> Value {
    let (Value::Object(request_map), Value::Object(members)) = (&mut request, members) else {
        panic!("both are objects");
    };
    request_map.extend(members);
    request
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The message was complete.
    Whole,
    /// The connection was closed before the end of the message.
    Closed,
    Reset,
}

#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 if there was no head.
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The number of HTTP chunks, if the body was chunked.
    pub(crate) chunks: usize,
    pub(crate) ended: Ended,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The data of each event. Panics if an event has no `data:` line.
    pub(crate) fn events(&self) -> Vec<String> {
        let text = self.text();
        let events: Vec<_> = text
            .split_terminator("\n\n")
            .map(|event| {
                event
                    .strip_prefix("data: ")
                    .expect("a data event")
                    .to_owned()
            })
            .collect();
        assert!(text.is_empty() || text.ends_with("\n\n"));
        events
    }

    /// The name and data of each event. Panics if an event has no name or its data is not JSON.
    pub(crate) fn named_events(&self) -> Vec<(String, Value)> {
        let text = self.text();
        assert!(text.is_empty() || text.ends_with("\n\n"));
        text.split_terminator("\n\n")
            .map(|event| {
                let (name, data) = event.split_once("\ndata: ").expect("a named event");
                let name = name.strip_prefix("event: ").expect("a name first");
                let data = serde_json::from_str(data).unwrap_or_else(|error| {
                    panic!("{error}: {data}");
                });
                (name.to_owned(), data)
            })
            .collect()
    }

    /// The chunks of a stream without its end mark.
    pub(crate) fn chunk_values(&self) -> Vec<Value> {
        let events = self.events();
        let data = events.iter().filter(|event| *event != "[DONE]");
        data.map(|event| serde_json::from_str(event).unwrap())
            .collect()
    }
}

pub(crate) async fn chat(sim: &Sim, request: &Value) -> Answer {
    post(sim, "/v1/chat/completions", &request.to_string()).await
}

pub(crate) async fn responses(sim: &Sim, request: &Value) -> Answer {
    post(sim, "/v1/responses", &request.to_string()).await
}

pub(crate) async fn messages(sim: &Sim, request: &Value) -> Answer {
    let head = format!(
        "x-api-key: {KEY}\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n"
    );
    let body = request.to_string();
    call(sim, "POST", "/v1/messages", &head, body.as_bytes()).await
}

pub(crate) async fn post(sim: &Sim, path: &str, body: &str) -> Answer {
    let head = format!("authorization: Bearer {KEY}\r\ncontent-type: application/json\r\n");
    call(sim, "POST", path, &head, body.as_bytes()).await
}

pub(crate) async fn get(sim: &Sim, path: &str) -> Answer {
    let head = format!("authorization: Bearer {KEY}\r\n");
    call(sim, "GET", path, &head, b"").await
}

pub(crate) async fn call(sim: &Sim, method: &str, path: &str, head: &str, body: &[u8]) -> Answer {
    let mut stream = send(sim, method, path, head, body).await;
    let mut bytes = Vec::new();
    let ended = loop {
        // Parse only if the answer may be complete: it ends with the last chunk, or it is not chunked.
        let chunked = bytes.windows(7).take(4096).any(|seven| seven == b"chunked");
        if (!chunked || bytes.ends_with(b"0\r\n\r\n"))
            && let Some(answer) = read_answer(&bytes)
        {
            return answer;
        }
        bytes.reserve(16 * 1024);
        match stream.read_buf(&mut bytes).await {
            Ok(0) => break Ended::Closed,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break Ended::Reset,
            Err(error) => panic!("{error}"),
        }
    };
    unfinished(&bytes, ended)
}

/// Sends a request and returns the connection without reading from it.
pub(crate) async fn send(
    sim: &Sim,
    method: &str,
    path: &str,
    head: &str,
    body: &[u8],
) -> TcpStream {
    let mut stream = TcpStream::connect(sim.address()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: sim\r\n{head}content-length: {length}\r\n\r\n");
    stream
        .write_all(&[head.as_bytes(), body].concat())
        .await
        .unwrap();
    stream
}

/// The answer, if it is complete.
fn read_answer(bytes: &[u8]) -> Option<Answer> {
    let mut answer = unfinished(bytes, Ended::Whole);
    if answer.head.is_empty() {
        return None;
    }
    if let Some(length) = answer.header("content-length") {
        let length: usize = length.parse().unwrap();
        return (answer.body.len() >= length).then_some(answer);
    }
    let raw = &bytes[answer.head.len()..];
    let (body, chunks, whole) = unchunked(raw);
    answer.body = body;
    answer.chunks = chunks;
    whole.then_some(answer)
}

fn unfinished(bytes: &[u8], ended: Ended) -> Answer {
    let head_end = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map_or(0, |at| at + 4);
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let status = head.get(9..12).map_or(0, |status| status.parse().unwrap());
    let mut answer = Answer {
        status,
        head,
        body: bytes[head_end..].to_vec(),
        chunks: 0,
        ended,
    };
    if answer.header("transfer-encoding") == Some("chunked") {
        let (body, chunks, _) = unchunked(&bytes[head_end..]);
        answer.body = body;
        answer.chunks = chunks;
    }
    answer
}

/// The content of a chunked body, the number of chunks, and whether it is complete.
fn unchunked(mut raw: &[u8]) -> (Vec<u8>, usize, bool) {
    let mut body = Vec::new();
    let mut chunks = 0;
    while let Some(line_end) = raw.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&raw[..line_end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, chunks, true);
        }
        let content = &raw[line_end + 2..];
        body.extend_from_slice(&content[..size.min(content.len())]);
        if content.len() < size + 2 {
            break;
        }
        chunks += 1;
        raw = &content[size + 2..];
    }
    (body, chunks, false)
}
