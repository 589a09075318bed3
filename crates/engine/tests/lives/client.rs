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

use crate::plan::{Plan, Spoken};
use crate::scripted_upstream::{LIFE, WORD};

/// What the client saw of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saw {
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
    pub(crate) saw: Saw,
    pub(crate) words: u64,
}

/// The request id of a call.
pub(crate) fn request_id(life: u64) -> String {
    format!("req_{life}")
}

/// The bytes that the client has read. They are shared, because the client may leave at any moment.
type Read = Arc<Mutex<Vec<u8>>>;

pub(crate) async fn live(engine: Arc<Engine>, key: KeyHead, plan: Arc<Plan>) -> View {
    sleep(Duration::from_millis(plan.begins_ms)).await;
    let read = Read::default();
    let life = attend(engine, key, &plan, &read);
    let saw = match plan.leaves_ms {
        Some(ms) => timeout(Duration::from_millis(ms), life)
            .await
            .unwrap_or(Saw::Left),
        None => life.await,
    };
    let read = String::from_utf8(read.lock().unwrap().clone()).unwrap();
    let words = u64::try_from(read.matches(WORD).count()).unwrap();
    View { saw, words }
}

async fn attend(engine: Arc<Engine>, key: KeyHead, plan: &Plan, read: &Read) -> Saw {
    match engine.text(call(key, plan)).await {
        Err(failed) => Saw::Failed(failed.failure.status()),
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
    match plan.spoken {
        Spoken::Chat => (Dialect::Chat, "/v1/chat/completions"),
        Spoken::Messages => (Dialect::Messages, "/v1/messages"),
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
        "messages": [{"role": "user", "content": format!("{LIFE}{}", plan.life)}],
    });
    body.to_string().into()
}

fn call(key: KeyHead, plan: &Plan) -> TextCall {
    let (dialect, endpoint) = endpoint(plan);
    TextCall {
        arrival: Arrival {
            key,
            request_id: request_id(plan.life).as_str().into(),
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

async fn read_all(mut body: AnswerBody, plan: &Plan, read: &Read) -> Saw {
    let is_stream = matches!(body, AnswerBody::Stream(_));
    loop {
        if is_stream && plan.reads_every_ms > 0 {
            sleep(Duration::from_millis(plan.reads_every_ms)).await;
        }
        match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => {
                let piece = frame.into_data().unwrap_or_default();
                read.lock().unwrap().extend_from_slice(&piece);
            }
            Some(Err(_aborted)) => return Saw::BrokenStream,
            None => break,
        }
    }
    let text = String::from_utf8(read.lock().unwrap().clone()).unwrap();
    match (is_stream, text.contains("\"error\"")) {
        (false, _) => Saw::Whole,
        (true, false) => Saw::Stream,
        (true, true) => Saw::BrokenStream,
    }
}
