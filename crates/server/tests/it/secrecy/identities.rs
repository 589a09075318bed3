//! Planted identities: an upstream's name, host or account in an error or refusal never reaches a caller, on any
//! endpoint, with any status and in any stream.
//!
//! `protocol/tests/it/refusals.rs` tests the same property of the texts alone. Here the texts pass through the whole
//! gateway. `TOLLGATE_SCAN_TEXTS=1000` tests more of them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::leaks::ALLOWED_HEADERS;
use crate::harness::{
    Answer, CannedUpstream, Dialect, GatewayBuilder, Key, Request, eventually, model_via, pairs,
};

/// The upstream's name for every model.
const NAME: &str = "zephyr-large-2026";

/// Texts with placeholders for identities.
const SENTENCES: [&str; 6] = [
    "Invalid value for 'temperature' at {}: must be <= 2",
    "{} said: {}: the model does not support 'tools' ({})",
    "[{}] request to {} failed: messages.0.content is too long",
    "model={} host={} account={} prompt is too long",
    "error from {}, see {} or contact {}.",
    "This request was refused by the content policy of {}",
];

struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % bound
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn letters(&mut self, count: usize) -> String {
        let letters = b"bcdfghjklmnpqrstvwxz0123456789";
        let first = char::from(letters[self.below(20)]);
        let rest = (1..count).map(|_| char::from(letters[self.below(letters.len())]));
        std::iter::once(first)
            .chain(rest.collect::<Vec<_>>())
            .collect()
    }

    fn identity(&mut self) -> String {
        let ending = self.pick(&[
            "com", "xyz", "app", "run", "svc", "store", "live", "dev", "lan", "zone",
        ]);
        let (label, host) = (self.letters(5), self.letters(8));
        let host = format!("{label}-7.{host}q.{ending}");
        match self.below(8) {
            0 => host,
            1 => format!("https://{host}/v1/chat/completions"),
            2 => format!("ops.team@{host}"),
            3 => format!("acct_{}", self.letters(9)),
            4 => format!(
                "{}_{}",
                self.pick(&["org", "proj", "req", "cus"]),
                self.letters(16)
            ),
            5 => format!(
                "arn:aws:{}:us-east-1:471147114711:{}/x",
                self.letters(6),
                self.letters(8)
            ),
            6 => self
                .pick(&[
                    "DeepSeek",
                    "Mistral",
                    "Bedrock",
                    "GroqError",
                    "AnthropicException",
                    "LiteLLM",
                ])
                .to_owned(),
            _ => self
                .pick(&[
                    "deployments/NAME",
                    "NAME-0613",
                    "ft:NAME:org:7",
                    "xNAMEx",
                    "(NAME)",
                ])
                .replace("NAME", NAME),
        }
    }
}

/// A text with planted identities, and the parts of it that must not appear in an answer.
struct TextWithIdentities {
    text: String,
    code: String,
    traces: Vec<String>,
}

impl TextWithIdentities {
    fn new(random: &mut SeededRandom) -> Self {
        let sentence = random.pick(&SENTENCES);
        let mut identities = vec![random.identity()];
        let mut text = String::new();
        for (at, piece) in sentence.split("{}").enumerate() {
            if at > 0 {
                let identity = random.identity();
                text.push_str(&identity);
                identities.push(identity);
            }
            text.push_str(piece);
        }
        // Shorter parts may occur in random ids by chance.
        let is_telling =
            |part: &&str| part.len() >= 7 && !["completions", "deployments"].contains(part);
        let parts = |identity: &String| -> Vec<String> {
            let parts = identity.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let telling = parts.filter(is_telling);
            telling.map(str::to_ascii_lowercase).collect()
        };
        let mut traces: Vec<String> = identities.iter().flat_map(parts).collect();
        traces.push("zephyr".to_owned());
        Self {
            code: identities.swap_remove(0),
            text,
            traces,
        }
    }

    /// An error body in one of the forms that upstreams use.
    fn error(&self, form: usize) -> Value {
        let Self { text, code, .. } = self;
        let whole = json!({ "message": text, "type": "invalid_request_error", "code": code, "param": code,
            "details": [{ "reason": code, "domain": text }], "metadata": { "provider_name": code, "raw": text } });
        match form % 5 {
            0 => json!({ "error": whole }),
            1 => {
                json!({ "type": "error", "error": { "type": "invalid_request_error", "message": text }, "request_id": code })
            }
            2 => {
                json!([{ "error": { "code": 400, "status": "INVALID_ARGUMENT", "message": text } }])
            }
            3 => json!({ "code": code, "error": text }),
            _ => json!({ "detail": text, "trace_id": code }),
        }
    }

    #[track_caller]
    fn assert_hidden(&self, what: &str, answer: &Answer) {
        for (name, value) in &answer.head.headers {
            assert!(
                ALLOWED_HEADERS.contains(&name.as_str()),
                "{what}: {name}: {value}"
            );
        }
        self.assert_not_in(what, &String::from_utf8_lossy(&answer.body));
    }

    #[track_caller]
    fn assert_not_in(&self, what: &str, shown: &str) {
        let lower = shown.to_ascii_lowercase();
        for trace in &self.traces {
            assert!(
                !lower.contains(trace),
                "{what}: {trace} of {:?} in {shown}",
                self.text
            );
        }
    }
}

/// The beginning of a stream, and a stream that ends in a refusal.
fn beginnings(dialect: Dialect, words: &str) -> [String; 2] {
    let words = json!(words);
    let named = |events: &[Value]| -> String {
        let line = |it: &Value| {
            let kind = it
                .get("type")
                .or(it.get("event_type"))
                .and_then(Value::as_str);
            let kind = kind.map_or(String::new(), |kind| format!("event: {kind}\n"));
            format!("{kind}data: {it}\n\n")
        };
        events.iter().map(line).collect()
    };
    let start = json!({ "type": "message_start", "message": { "id": "m", "type": "message", "role": "assistant",
        "model": NAME, "content": [], "stop_reason": null, "usage": { "input_tokens": 1, "output_tokens": 1 } } });
    match dialect {
        Dialect::Chat => {
            let delta = json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": NAME,
                "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "hi" } }] });
            let failed = json!({ "id": "c", "model": NAME, "choices": [{ "index": 0, "delta": {},
                "finish_reason": "stop", "error": { "code": 502, "message": words } }] });
            [
                named(std::slice::from_ref(&delta)),
                named(&[delta, failed]) + "data: [DONE]\n\n",
            ]
        }
        Dialect::Messages => {
            let block = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
            let delta = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "hi" } });
            let refusal = json!({ "type": "message_delta", "delta": { "stop_reason": "refusal", "stop_sequence": null,
                "stop_details": { "type": "refusal", "category": null, "explanation": words } }, "usage": { "output_tokens": 1 } });
            let stop = json!({ "type": "message_stop" });
            [
                named(&[start.clone(), block, delta]),
                named(&[start, refusal, stop]),
            ]
        }
        Dialect::Generate => {
            let delta = json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "hi" }] }, "index": 0 }], "modelVersion": NAME });
            let blocked = json!({ "promptFeedback": { "blockReason": "OTHER", "blockReasonMessage": words }, "modelVersion": NAME });
            [named(&[delta]), named(&[blocked])]
        }
        Dialect::Responses => {
            let response = |status: &str, details: Value| {
                json!({ "id": "r", "object": "response", "created_at": 1, "model": NAME,
                "status": status, "incomplete_details": details, "output": [], "usage": null })
            };
            let created = json!({ "type": "response.created", "sequence_number": 0, "response": response("in_progress", Value::Null) });
            let item = json!({ "type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
                "item": { "id": "m", "type": "message", "role": "assistant", "status": "in_progress", "content": [] } });
            let part = json!({ "type": "response.content_part.added", "sequence_number": 2, "item_id": "m", "output_index": 0,
                "content_index": 0, "part": { "type": "output_text", "text": "", "annotations": [] } });
            let delta = json!({ "type": "response.output_text.delta", "sequence_number": 3, "item_id": "m", "output_index": 0,
                "content_index": 0, "delta": "hi", "logprobs": [] });
            let ended = json!({ "type": "response.incomplete", "sequence_number": 1,
                "response": response("incomplete", json!({ "reason": "content_filter", "message": words })) });
            [
                named(&[created.clone(), item, part, delta]),
                named(&[created, ended]),
            ]
        }
        Dialect::Interactions => {
            let created = json!({ "event_type": "interaction.created", "interaction": { "id": "i", "model": NAME, "status": "in_progress" } });
            let failed = json!({ "event_type": "interaction.completed", "interaction": { "id": "i", "model": NAME,
                "status": "failed", "error": { "message": words }, "steps": [] } });
            let start = json!({ "event_type": "step.start", "index": 0, "step": { "type": "model_output" } });
            let delta = json!({ "event_type": "step.delta", "index": 0, "delta": { "type": "text", "text": "hi" } });
            [
                named(&[created.clone(), start, delta]),
                named(&[created, failed]),
            ]
        }
    }
}

fn texts() -> u64 {
    let asked = std::env::var("TOLLGATE_SCAN_TEXTS").ok();
    asked.and_then(|texts| texts.parse().ok()).unwrap_or(15)
}

#[tokio::test]
async fn no_text_dialect_tells_who_refused() {
    let canned = CannedUpstream::json("{}").await;
    let address = canned.address().to_string();
    let builder = GatewayBuilder::default().setting("ledger", "debt_limit = \"2000\"");
    let add = |builder: GatewayBuilder, dialect| builder.upstream(dialect, &address, NAME);
    let (gateway, key) = Dialect::ALL.into_iter().fold(builder, add).funded().await;
    let mut random = SeededRandom(0x9e37_79b9_7f4a_7c15);
    let mut calls = 0;
    for text in 0..texts() {
        let planted = TextWithIdentities::new(&mut random);
        for (caller, upstream) in pairs() {
            let form = random.below(5);
            let error = planted.error(form).to_string();
            let event = format!(
                ": {0}\nid: {0}\nevent: error\ndata: {error}\n\n",
                planted.code
            );
            let [content, refused] = beginnings(upstream, &planted.text);
            let status = [400, 409, 413, 422][random.below(4)];
            for (status, kind, body, stream) in [
                (status, "application/json", error.clone(), false),
                (status, "application/json", error.clone(), true),
                (200, "application/json", error.clone(), false),
                (200, "text/event-stream", event.clone(), true),
                (200, "text/event-stream", format!("{content}{event}"), true),
                (
                    200,
                    "text/event-stream",
                    format!(": {}\n\n{refused}", planted.code),
                    true,
                ),
            ] {
                canned.answers(status, kind, &body);
                let request = caller.call(
                    &key.secret,
                    &model_via(upstream),
                    caller.ask("hello"),
                    stream,
                );
                let answer = gateway.send(&request).await;
                let what =
                    format!("text {text}, {caller:?} via {upstream:?}, {status} {kind}: {body}");
                planted.assert_hidden(&what, &answer);
                if body.starts_with(&content) {
                    assert!(
                        answer.text().contains("\"hi\""),
                        "{what}: {}",
                        answer.text()
                    );
                }
                calls += 1;
            }
        }
    }
    assert_reached(&canned, calls);
    gateway.verify().await;
}

/// Most calls must have reached the upstream: while a channel is out of use, the test proves nothing.
#[track_caller]
fn assert_reached(canned: &CannedUpstream, calls: usize) {
    let came = canned.bodies().len();
    assert!(came * 2 > calls, "{came} of {calls} calls");
}

/// Models for the endpoints other than the text dialects.
fn entries(canned: &CannedUpstream) -> String {
    let mut entries = format!(
        "[[channel]]
        name = \"planted\"
        preset = \"sim\"
        base_url = \"http://{}/v1\"
        credential = {{ file = \"upstream-key\" }}\n",
        canned.address()
    );
    for (id, kind, price, profile) in [
        (
            "picture",
            "image",
            r#"{ image = "0.04" }"#,
            r#"{ base = "gpt-image" }"#,
        ),
        ("vector", "embedding", r#"{ input = "1" }"#, "{}"),
        (
            "sound",
            "audio",
            r#"{ tts_characters = "15", stt_second = "0.001", realtime_minute = "0.6", tts_stream_characters = "15", stt_stream_second = "0.001" }"#,
            "{}",
        ),
        (
            "film",
            "video",
            r#"{ video_second = "0.05" }"#,
            r#"{ base = "video-a" }"#,
        ),
    ] {
        let _ = writeln!(
            entries,
            "[[model]]
            id = \"maker/{id}\"
            kind = \"{kind}\"
            routes = [{{ channel = \"planted\", model = \"{NAME}\" }}]
            price = {price}
            profile = {profile}"
        );
    }
    entries
}

fn requests(key: &Key) -> Vec<Request> {
    let post = |path: &str, body: Value| Request::post(path).json(&body).bearer(&key.secret);
    let form = "--b0\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nmaker/sound\r\n--b0\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--b0--\r\n";
    let upgrade = |target: &str| {
        Request::get(target)
            .bearer(&key.secret)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==")
    };
    let picture = json!({ "model": "maker/picture", "prompt": "x" });
    let streamed = json!({ "model": "maker/picture", "prompt": "x", "stream": true });
    let edit = json!({ "model": "maker/picture", "prompt": "x", "image": { "type": "image_url", "url": "data:image/png;base64,AA" } });
    vec![
        post("/v1/images/generations", picture),
        post("/v1/images/generations", streamed),
        post("/v1/images/edits", edit),
        post(
            "/v1/embeddings",
            json!({ "model": "maker/vector", "input": "x" }),
        ),
        post("/v1/tts", json!({ "model": "maker/sound", "text": "x" })),
        post(
            "/v1/tts",
            json!({ "model": "maker/sound", "text": "x", "with_timestamps": true }),
        ),
        Request::post("/v1/stt")
            .bearer(&key.secret)
            .header("content-type", "multipart/form-data; boundary=b0")
            .body(form),
        Request::get("/v1/tts/voices?model=maker/sound").bearer(&key.secret),
        Request::get("/v1/tts/voices/eve?model=maker/sound").bearer(&key.secret),
        upgrade("/v1/realtime?model=maker/sound"),
        upgrade("/v1/tts?model=maker/sound&language=en"),
        upgrade("/v1/stt?model=maker/sound"),
        post(
            "/v1/videos/generations",
            json!({ "model": "maker/film", "prompt": "x" }),
        ),
    ]
}

#[tokio::test]
async fn no_other_endpoint_tells_who_refused() {
    let canned = CannedUpstream::json("{}").await;
    let (gateway, key) = GatewayBuilder::default()
        .setting("ledger", "debt_limit = \"2000\"")
        .entries(&entries(&canned))
        .funded()
        .await;
    let mut random = SeededRandom(0x1234_5678_9abc_def1);
    let mut calls = 0;
    for text in 0..texts() {
        let planted = TextWithIdentities::new(&mut random);
        for request in requests(&key) {
            let error = planted.error(random.below(5)).to_string();
            for (status, kind, body) in [
                (
                    [400, 404, 409, 413, 422][random.below(5)],
                    "application/json",
                    error.clone(),
                ),
                (200, "application/json", error.clone()),
                (
                    200,
                    "text/event-stream",
                    format!(": {}\nevent: error\ndata: {error}\n\n", planted.code),
                ),
            ] {
                canned.answers(status, kind, &body);
                let answer = gateway.send(&request).await;
                let what = format!("text {text}, {request:?}, {status} {kind}: {body}");
                planted.assert_hidden(&what, &answer);
                calls += 1;
            }
        }
    }
    assert_reached(&canned, calls);
    gateway.verify().await;
}

/// Successful answers do not identify their upstream either, not even in the members beside a vector.
#[tokio::test]
async fn no_answer_tells_who_gave_it() {
    let canned = CannedUpstream::json("{}").await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&entries(&canned))
        .funded()
        .await;
    let planted = TextWithIdentities::new(&mut SeededRandom(0x0bad_cafe_dead_beef));
    let code = &planted.code;
    let vectors = json!({ "id": code, "object": "list", "model": NAME, "request_id": code, "provider": code,
        "data": [{ "object": "embedding", "index": 0, "embedding": [1.0], "id": code, "model": NAME }] });
    let heard =
        json!({ "id": code, "text": "hi", "duration": 1.0, "model": NAME, "request_id": code });
    let pictures = json!({ "id": code, "created": 1, "model": NAME, "request_id": code,
        "data": [{ "b64_json": "iVBORw0KGgo=", "id": code },
            { "error": { "code": code, "message": planted.text, "request_id": code, "details": [{ "host": code }] } }],
        "usage": { "input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "cost_details": { "provider": code },
            "provider": code, "request_id": code } });
    let timed =
        json!({ "id": code, "audio": "AAAA", "model": NAME, "request_id": code, "server": code });
    let requests = requests(&key);
    for (at, body) in [
        (0, pictures.to_string()),
        (3, vectors.to_string()),
        (5, timed.to_string()),
        (6, heard.to_string()),
    ] {
        canned.answers(200, "application/json", &body);
        let answer = gateway.send(&requests[at]).await.ok();
        planted.assert_hidden(&body, &answer);
    }
    gateway.verify().await;
}

#[tokio::test]
async fn no_failed_task_tells_who_failed() {
    let canned = CannedUpstream::json("{}").await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&entries(&canned))
        .setting("tasks", "poll_first_ms = 20")
        .setting("tasks", "poll_max_ms = 40")
        .funded()
        .await;
    let mut random = SeededRandom(0x5eed_5eed_5eed_5eed);
    for _ in 0..texts().min(10) {
        let planted = TextWithIdentities::new(&mut random);
        canned.answers(200, "application/json", r#"{"request_id":"theirs-1"}"#);
        let created = gateway.send(&requests(&key)[12]).await.ok();
        let id = created.json()["request_id"].as_str().unwrap().to_owned();
        let failed = json!({ "status": "failed", "error": { "code": planted.code, "message": planted.text }, "model": NAME });
        canned.answers(200, "application/json", &failed.to_string());
        let ended = eventually("the end of the task", async || {
            let answer = gateway.get(&key, &format!("/v1/tasks/{id}")).await.ok();
            (answer.json()["status"] != "pending").then_some(answer)
        })
        .await;
        planted.assert_hidden("a failed task", &ended);
    }
    gateway.verify().await;
}

/// The operator sees the upstream's text that is hidden from the caller.
#[tokio::test]
async fn the_journal_keeps_what_an_upstream_said() {
    let canned = CannedUpstream::json("{}").await;
    let address = canned.address().to_string();
    let (gateway, key) = GatewayBuilder::default()
        .upstream(Dialect::Messages, &address, NAME)
        .funded()
        .await;
    let words = "Acme Corp (api.acme.xyz) refused the request of acct_47114711";
    let [content, refused] = beginnings(Dialect::Messages, words);
    let event = format!(
        "event: error\ndata: {}\n\n",
        json!({ "type": "error", "error": { "message": words } })
    );
    for stream in [refused, content + &event] {
        canned.answers(200, "text/event-stream", &stream);
        let request = Dialect::Messages.call(
            &key.secret,
            &model_via(Dialect::Messages),
            Dialect::Messages.ask("hello"),
            true,
        );
        let answer = gateway.send(&request).await;
        assert!(
            !answer.text().to_lowercase().contains("acme"),
            "{}",
            answer.text()
        );
        let id = answer.header("x-request-id").unwrap().to_owned();
        eventually("the row of the journal", async || {
            let shown = gateway.cli(&["logs", "show", &id]).await.stdout;
            shown.contains("acct_47114711").then_some(())
        })
        .await;
    }
}
