//! An upstream that follows the plan of each call.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::sleep;
use upstream::MemoryListener;

use crate::plan::{Act, Plan, Reply, ReplyEnd};

/// The text before the number of a call in its prompt.
pub(crate) const CALL_PREFIX: &str = "life ";

/// A word of an answer. It occurs nowhere else in an answer.
pub(crate) const WORD: &str = "word ";

/// The upstream's name for `m/dear`, the fallback model.
pub(crate) const FALLBACK_MODEL: &str = "up-dear";

/// The plans of a wave. For each call, its attempts (true if for the fallback model) and the number of words sent in
/// its last attempt.
#[derive(Debug, Default)]
pub(crate) struct Script {
    plans: BTreeMap<u64, Arc<Plan>>,
    attempts: Mutex<BTreeMap<u64, Vec<bool>>>,
    sent: Mutex<BTreeMap<u64, u64>>,
}

/// One request, and what the upstream does with it.
struct PlannedAnswer<'a> {
    script: &'a Script,
    number: u64,
    act: Act,
}

impl PlannedAnswer<'_> {
    /// Records how many words are about to be sent.
    fn sends(&self, words: u64) {
        let mut sent = self.script.sent.lock().unwrap();
        *sent.entry(self.number).or_default() += words;
    }
}

impl Script {
    pub(crate) fn new(plans: &[Arc<Plan>]) -> Self {
        Self {
            plans: plans
                .iter()
                .map(|plan| (plan.number, Arc::clone(plan)))
                .collect(),
            attempts: Mutex::default(),
            sent: Mutex::default(),
        }
    }

    /// The requests of a call that have arrived, each true if it was for the fallback model.
    pub(crate) fn attempts(&self, number: u64) -> Vec<bool> {
        let attempts = self.attempts.lock().unwrap();
        attempts.get(&number).cloned().unwrap_or_default()
    }

    /// The number of words sent in the last attempt of a call.
    pub(crate) fn words_sent(&self, number: u64) -> u64 {
        let sent = self.sent.lock().unwrap();
        sent.get(&number).copied().unwrap_or(0)
    }

    fn plan_answer(&self, request: &Value) -> PlannedAnswer<'_> {
        let messages = request["messages"].as_array().unwrap();
        let content = &messages.last().unwrap()["content"];
        let prompt = content.as_str().or_else(|| content[0]["text"].as_str());
        let number = prompt
            .and_then(|text| text.strip_prefix(CALL_PREFIX))
            .unwrap();
        let number: u64 = number.parse().unwrap();
        let mut attempts = self.attempts.lock().unwrap();
        let made = attempts.entry(number).or_default();
        made.push(request["model"] == FALLBACK_MODEL);
        self.sent.lock().unwrap().remove(&number);
        PlannedAnswer {
            script: self,
            number,
            act: self.plans[&number].act(made.len() - 1).clone(),
        }
    }
}

/// Serves connections until the channel is dropped.
pub(crate) async fn serve(mut listener: MemoryListener, script: Arc<Script>) {
    while let Some(connection) = listener.accept().await {
        let script = Arc::clone(&script);
        // The plan breaks some connections on purpose, so errors are ignored.
        tokio::spawn(async move {
            let _ = answer_all(connection, &script).await;
        });
    }
}

/// Answers one request after another. Returning, with or without an error, closes the connection.
async fn answer_all(mut connection: DuplexStream, script: &Script) -> io::Result<()> {
    let mut read = Vec::new();
    while let Some(request) = next_request(&mut connection, &mut read).await? {
        let is_streamed = request["stream"] == true;
        let connection = &mut connection;
        let planned = script.plan_answer(&request);
        match &planned.act {
            Act::HangUp => return Ok(()),
            Act::Silence => return silence(connection).await,
            Act::Status(status) => {
                let body = json!({"error": {"message": "no", "type": "server_error"}});
                whole(connection, *status, body.to_string().as_bytes()).await?;
            }
            Act::Nonsense => whole(connection, 200, b"<html>hello</html>").await?,
            Act::Answer(reply) if is_streamed => stream(connection, reply, &planned).await?,
            Act::Answer(reply) => answer(connection, reply, &planned).await?,
        }
    }
    Ok(())
}

/// Waits until the other side closes the connection.
async fn silence(connection: &mut DuplexStream) -> io::Result<()> {
    let mut rest = [0; 64];
    while connection.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Reads a request and returns its body; `None` when the other side has closed the connection.
async fn next_request(
    connection: &mut DuplexStream,
    read: &mut Vec<u8>,
) -> io::Result<Option<Value>> {
    loop {
        if let Some(head) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = str::from_utf8(&read[..head]).unwrap().to_ascii_lowercase();
            let (_, length) = text.split_once("content-length: ").unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            let end = head + 4 + length;
            if read.len() >= end {
                let body = serde_json::from_slice(&read[head + 4..end]).unwrap();
                read.drain(..end);
                return Ok(Some(body));
            }
        }
        if connection.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
}

async fn whole(connection: &mut DuplexStream, status: u16, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(body).await
}

/// Sends a whole answer. If the plan cuts or stalls it, only a part of its body is sent.
async fn answer(
    connection: &mut DuplexStream,
    reply: &Reply,
    planned: &PlannedAnswer<'_>,
) -> io::Result<()> {
    sleep(Duration::from_millis(reply.head_after_ms)).await;
    let words = usize::try_from(reply.words).unwrap();
    let mut body = json!({
        "id": "up", "object": "chat.completion", "created": 1, "model": "up",
        "choices": [{
            "index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": WORD.repeat(words)},
        }],
    });
    if let Some((input, output)) = reply.usage {
        body["usage"] = usage(input, output);
    }
    let body = body.to_string();
    let (head, rest) = body.split_at(body.len() / 2);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{head}"
    );
    connection.write_all(head.as_bytes()).await?;
    match reply.end {
        ReplyEnd::CutAfter(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
        ReplyEnd::StallAfter(_) => return silence(connection).await,
        ReplyEnd::Regular | ReplyEnd::CutBeforeMark => {}
    }
    sleep(Duration::from_millis(reply.gap_ms)).await;
    planned.sends(reply.words);
    connection.write_all(rest.as_bytes()).await
}

fn usage(input: u64, output: u64) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}

async fn stream(
    connection: &mut DuplexStream,
    reply: &Reply,
    planned: &PlannedAnswer<'_>,
) -> io::Result<()> {
    sleep(Duration::from_millis(reply.head_after_ms)).await;
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    connection.write_all(head.as_bytes()).await?;
    let delta = |delta: Value, reason: Value| {
        json!({
            "id": "up", "object": "chat.completion.chunk", "created": 1, "model": "up",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        })
    };
    for word in 0..=reply.words {
        match reply.end {
            ReplyEnd::CutAfter(words) if words == word => {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            ReplyEnd::StallAfter(words) if words == word => return silence(connection).await,
            _ => {}
        }
        if word < reply.words {
            sleep(Duration::from_millis(reply.gap_ms)).await;
            let event = delta(json!({"content": WORD}), Value::Null);
            planned.sends(1);
            event_of(connection, &event.to_string()).await?;
        }
    }
    event_of(connection, &delta(json!({}), json!("stop")).to_string()).await?;
    if let Some((input, output)) = reply.usage {
        let mut last = delta(json!({}), Value::Null);
        last["choices"] = json!([]);
        last["usage"] = usage(input, output);
        event_of(connection, &last.to_string()).await?;
    }
    if reply.end == ReplyEnd::CutBeforeMark {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    event_of(connection, "[DONE]").await?;
    connection.write_all(b"0\r\n\r\n").await
}

/// Sends one event as a separate HTTP chunk.
async fn event_of(connection: &mut DuplexStream, data: &str) -> io::Result<()> {
    let event = format!("data: {data}\n\n");
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    connection.write_all(chunk.as_bytes()).await
}
