//! The client of one call: sends the request, reads the answer, and may leave at any moment.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use engine::{AnswerBody, Arrival, Engine, TextCall};
use http::HeaderMap;
use http_body::Body as _;
use protocol::Dialect;
use serde_json::json;
use store::KeyHead;
use tokio::time::{sleep, timeout};

use crate::plan::{ClientDialect, Plan};
use crate::scripted_upstream::{CALL_PREFIX, WORD};

/// What the client saw of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientResult {
    /// An error instead of an answer.
    Failed(u16),
    Whole,
    /// A stream with its end mark.
    Stream,
    /// A stream that ended with an error, or was aborted.
    BrokenStream,
    /// The client left before the end.
    Left,
}

/// What the client saw, and the number of words of the answer that it read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) client_result: ClientResult,
    pub(crate) words: u64,
}

pub(crate) fn request_id(number: u64) -> String {
    format!("req_{number}")
}

/// The bytes that the client has read. They are shared, because the client may leave at any moment.
type Read = Arc<Mutex<Vec<u8>>>;

pub(crate) async fn run_call(engine: Arc<Engine>, key: KeyHead, plan: Arc<Plan>) -> View {
    sleep(Duration::from_millis(plan.begins_ms)).await;
    let read = Read::default();
    let exchange = send_and_read(engine, key, &plan, &read);
    let client_result = match plan.leaves_ms {
        Some(ms) => timeout(Duration::from_millis(ms), exchange)
            .await
            .unwrap_or(ClientResult::Left),
        None => exchange.await,
    };
    let read = String::from_utf8(read.lock().unwrap().clone()).unwrap();
    let words = u64::try_from(read.matches(WORD).count()).unwrap();
    View {
        client_result,
        words,
    }
}

async fn send_and_read(
    engine: Arc<Engine>,
    key: KeyHead,
    plan: &Plan,
    read: &Read,
) -> ClientResult {
    match engine.text(call(key, plan)).await {
        Err(failed) => ClientResult::Failed(failed.failure.status()),
        Ok(answer) => read_all(answer.body, plan, read).await,
    }
}

/// The input tokens that are counted at admission for the request of a call.
pub(crate) fn input_tokens(plan: &Plan) -> u64 {
    let (dialect, _) = endpoint(plan);
    let head = protocol::native::read_head(dialect, &request(plan));
    head.unwrap().input.tokens
}

fn endpoint(plan: &Plan) -> (Dialect, &'static str) {
    match plan.dialect {
        ClientDialect::Chat => (Dialect::Chat, "/v1/chat/completions"),
        ClientDialect::Messages => (Dialect::Messages, "/v1/messages"),
    }
}

fn request(plan: &Plan) -> Bytes {
    let model = if plan.is_misspelt {
        "m/none".to_owned()
    } else {
        plan.model.to_owned()
    };
    let body = json!({
        "model": model,
        "stream": plan.is_streamed,
        "max_tokens": 300,
        "messages": [{"role": "user", "content": format!("{CALL_PREFIX}{}", plan.number)}],
    });
    body.to_string().into()
}

fn call(key: KeyHead, plan: &Plan) -> TextCall {
    let (dialect, endpoint) = endpoint(plan);
    TextCall {
        arrival: Arrival {
            key,
            request_id: request_id(plan.number).as_str().into(),
            endpoint,
            at: Instant::now(),
            trace: None,
        },
        dialect,
        named: None,
        body: request(plan),
        extra: HeaderMap::new(),
    }
}

async fn read_all(mut body: AnswerBody, plan: &Plan, read: &Read) -> ClientResult {
    let is_stream = matches!(body, AnswerBody::Stream(_) | AnswerBody::Waiting(_));
    loop {
        if is_stream && plan.reads_every_ms > 0 {
            sleep(Duration::from_millis(plan.reads_every_ms)).await;
        }
        match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => {
                let piece = frame.into_data().unwrap_or_default();
                read.lock().unwrap().extend_from_slice(&piece);
            }
            Some(Err(_aborted)) => return ClientResult::BrokenStream,
            None => break,
        }
    }
    let text = String::from_utf8(read.lock().unwrap().clone()).unwrap();
    match (is_stream, text.contains("\"error\"")) {
        (false, _) => ClientResult::Whole,
        (true, false) => ClientResult::Stream,
        (true, true) => ClientResult::BrokenStream,
    }
}
