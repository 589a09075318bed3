//! Properties of any bytes. The fuzzer and the tests call the same functions.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use protocol::canon::{AnswerContext, Dropped, Reasoning, Request, Target};
use protocol::convert::{Transcoder, convert_answer, read_request as read, write_request};
use protocol::messages::converse;
use protocol::native::{self, Identity, Rewriter, UnusableAnswer, rewrite_answer};
use protocol::sse::Splitter;
use protocol::{ByteQueue, Dialect, Failure, Profile, embeddings, images, video, voice};
use serde_json::Value;

use crate::grammar::{self, End};
use crate::pieces::sizes;

const PUBLIC: &str = "maker/public";
const UPSTREAM: &str = "hidden-upstream-name";

/// Frames do not depend on how the bytes were split, and have no more bytes than the input.
pub fn split(data: &[u8]) {
    let whole = frames(data, data.len().max(1));
    assert_eq!(whole.concat(), data);
    for size in sizes(data) {
        assert_eq!(frames(data, size), whole, "in pieces of {size}");
    }
}

fn frames(data: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::default();
    let mut frames = Vec::new();
    for piece in data.chunks(size) {
        splitter.push(Bytes::copy_from_slice(piece));
        while let Ok(Some(frame)) = splitter.next_frame() {
            frames.push(frame.bytes.to_vec());
        }
    }
    frames.extend(splitter.finish().map(|frame| frame.bytes.to_vec()));
    frames
}

/// A native rewrite of an accepted request is JSON with the upstream's model, and otherwise means
/// the same as the original.
pub fn patch(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    for dialect in Dialect::ALL {
        let head = match dialect {
            Dialect::Generate => native::read_named_head(&body, PUBLIC, false),
            _ => native::read_head(dialect, &body),
        };
        let Ok(head) = head else {
            continue;
        };
        let written = native::write_request(&body, &head, UPSTREAM);
        // Lone surrogates and numbers out of range pass unparsed; `serde_json` has no value for
        // them.
        let Ok(sent) = serde_json::from_slice::<Value>(&body) else {
            continue;
        };
        let received = parsed(&written);
        for (name, value) in sent.as_object().expect("an object was read") {
            match name.as_str() {
                "model" if dialect != Dialect::Generate => {
                    assert_eq!(received["model"], UPSTREAM);
                }
                "model" | "store" | "stream_options" => {}
                // Our wrapping of signatures and ids is removed; sizes have an alias.
                "messages" | "input" | "contents" | "generationConfig" | "generation_config" => {
                    assert!(received.get(name).is_some(), "{name} is gone");
                }
                // Upstreams take only a string.
                "system_instruction" if dialect == Dialect::Interactions && !value.is_null() => {
                    assert!(received[name].is_string(), "{name} is not a string");
                    assert!(!value.is_string() || received[name] == *value, "{name}");
                }
                _ => assert_eq!(received.get(name), Some(value), "{name} was changed"),
            }
        }
    }
}

/// No request of n bytes counts below n/12 tokens, not counting inline media, and none counts above
/// its bound. The bytes are used as the value of some members that a model reads, and as a whole
/// request.
pub fn count(data: &[u8]) {
    let Ok(value) = std::str::from_utf8(data) else {
        return;
    };
    for dialect in Dialect::ALL {
        let wrapped = match dialect {
            Dialect::Chat | Dialect::Messages => format!(
                r#"{{"model":"{PUBLIC}","max_tokens":9,"messages":[{{"role":"user","content":{value}}}],"tools":{value}}}"#
            ),
            Dialect::Responses | Dialect::Interactions => {
                format!(r#"{{"model":"{PUBLIC}","input":[{{"content":{value}}}],"tools":{value}}}"#)
            }
            Dialect::Generate => {
                format!(r#"{{"contents":[{{"parts":{value}}}],"documents":{value}}}"#)
            }
        };
        for body in [wrapped, value.to_owned()] {
            let body = Bytes::from(body);
            let head = match dialect {
                Dialect::Generate => native::read_named_head(&body, PUBLIC, false),
                _ => native::read_head(dialect, &body),
            };
            let Ok(head) = head else {
                continue;
            };
            let input = head.input;
            let text_bytes = body.len() as u64 - input.media_bytes;
            assert!(input.tokens * 12 >= text_bytes, "{dialect}: {input:?}");
            assert!(
                input.tokens_max.is_none_or(|most| most >= input.tokens),
                "{dialect}: {input:?}"
            );
        }
    }
}

fn parsed(body: &[u8]) -> Value {
    let value = serde_json::from_slice(body);
    value.unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(body)))
}

/// Escapes in the strings of a request do not change any decision, on any endpoint that reads JSON.
pub fn guarded_names(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let [small, large] = sizes(data);
        same_decisions(text, (small * large) as u64);
    }
}

/// A text and the same text with some characters escaped lead to the same decisions.
pub fn same_decisions(text: &str, seed: u64) {
    let escaped = escaped(text, seed);
    let read = |text: &str| decisions(&Bytes::copy_from_slice(text.as_bytes()));
    for (plain, escaped_one) in read(text).into_iter().zip(read(&escaped)) {
        assert_eq!(plain, escaped_one, "{text}\n{escaped}");
    }
}

/// Equivalent JSON in which some characters of strings are escaped.
fn escaped(text: &str, seed: u64) -> String {
    let mut state = seed | 1;
    let mut toss = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state & 0x300 == 0
    };
    let mut out = String::with_capacity(text.len() * 2);
    let mut is_string = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_string = !is_string,
            '\\' if is_string => {
                out.push(c);
                let next = chars.next();
                out.extend(next);
                if next == Some('u') {
                    out.extend(chars.by_ref().take(4));
                }
                continue;
            }
            '/' if is_string && toss() => {
                out.push_str("\\/");
                continue;
            }
            ' '..='~' if is_string && toss() => {
                // Writing to memory cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// The result of each endpoint that reads JSON: the refusal, or what decides billing and routing. For
/// videos, it is only whether the request is accepted.
fn decisions(body: &Bytes) -> Vec<String> {
    let mut all = Vec::new();
    for dialect in Dialect::ALL {
        let head = match dialect {
            Dialect::Generate => native::read_named_head(body, PUBLIC, true),
            _ => native::read_head(dialect, body),
        };
        all.push(told(head, |head| {
            let sent = native::write_request(body, &head, UPSTREAM);
            let sent = serde_json::from_slice::<Value>(&sent);
            let sent = sent.ok().map(|sent| sent["model"].clone());
            format!(
                "{} {} {} {:?} {} {:?} {:?} {} {:?} {sent:?}",
                head.model,
                head.stream,
                head.include_usage,
                head.output_tokens_max,
                head.choices,
                head.tools,
                head.sampling,
                head.input.fills_context,
                head.long_cache,
            )
        }));
    }
    all.push(told(embeddings::read_request(body), |it| it.model));
    for batch in [false, true] {
        let request = embeddings::read_named_request(body, PUBLIC, batch);
        all.push(told(request, |it| it.model));
    }
    for asked in [images::Operation::Generation, images::Operation::Edit] {
        all.push(told(images::read_json(asked, body), |it| {
            format!(
                "{} {} {} {:?}",
                it.model, it.stream, it.prompt_tokens, it.options
            )
        }));
    }
    for speech in [voice::read_speech(body), voice::read_renamed_speech(body)] {
        all.push(told(speech, |it| {
            format!(
                "{} {} {} {:?}",
                it.model, it.characters, it.with_timestamps, it.dropped
            )
        }));
    }
    let taken = "taken".to_owned();
    all.push(told(video::omni::read_request(body), |_| taken.clone()));
    all.push(told(video::predict::read_request(body, PUBLIC), |_| {
        taken.clone()
    }));
    all.push(told(video::content_task::read_request(body), |_| {
        taken.clone()
    }));
    for operation in [
        video::video_a::Operation::Generation,
        video::video_a::Operation::Edit,
        video::video_a::Operation::Extension,
    ] {
        all.push(told(video::video_a::read_request(body, operation), |_| {
            taken.clone()
        }));
    }
    all
}

fn told<T>(result: Result<T, Failure>, tell: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(taken) => tell(taken),
        Err(failure) => format!("{:?} {:?}", failure.code, failure.param),
    }
}

/// A redacted body keeps its size limit.
pub fn redact(data: &[u8]) {
    for bytes_max in [0, 100, 4096] {
        let clean = protocol::redact(data, bytes_max);
        assert!(clean.len() <= bytes_max, "{} > {bytes_max}", clean.len());
    }
}

/// A request that can be read can be written for every upstream, or is refused. The list of dropped
/// members is a valid header.
pub fn read_request(data: &[u8]) {
    let profile = Profile::default();
    let target = Target {
        upstream_model: UPSTREAM,
        public_model: PUBLIC,
        profile: &profile,
        output_limit: protocol::OutputLimit::default(),
        asks_for_usage: true,
    };
    for from in Dialect::ALL {
        let Ok(request) = read(from, data, false) else {
            continue;
        };
        for to in Dialect::ALL {
            let mut dropped = Dropped::new(from);
            if let Ok(body) = write_request(to, &request, &target, &mut dropped) {
                check_written(&body, &dropped);
            }
        }
        let mut dropped = Dropped::new(from);
        if let Ok(body) = converse::write_request(&request, &target, &mut dropped) {
            parsed(&body);
            check_written(&body, &dropped);
        }
    }
    let mut dropped = Dropped::new(Dialect::Messages);
    if let Ok(body) = converse::rewrite_request(data, &[], &mut dropped) {
        check_written(&body, &dropped);
    }
}

fn check_written(body: &[u8], dropped: &Dropped) {
    assert!(body.starts_with(b"{") && body.ends_with(b"}"));
    let header = dropped.header().unwrap_or_default();
    assert!(header.is_ascii(), "{header}");
    assert!(
        !header.bytes().any(|byte| byte.is_ascii_control()),
        "{header}"
    );
}

/// Whatever an upstream sends, the client's SDK can parse the result: from every dialect to every
/// other, streamed and buffered, however the bytes were split.
pub fn transcode(data: &[u8]) {
    if let Ok(answer) = converse::read_answer(data) {
        for to in Dialect::ALL {
            if let Ok(answer) = convert_answer(Dialect::Messages, to, &answer, &context(to)) {
                let read = grammar::read(to, &answer.pieces.into_bytes());
                read.unwrap_or_else(|wrong| panic!("converse to {to}: {wrong}"));
            }
        }
    }
    for from in Dialect::ALL {
        rewrite(from, data);
        for to in Dialect::ALL {
            let whole = relay(from, to, data, data.len().max(1));
            let heard = grammar::read_stream(to, &whole);
            let heard = heard.unwrap_or_else(|wrong| panic!("{from} to {to}: {wrong}\n{whole}"));
            assert_ne!(heard.end, End::Open, "{from} to {to}: {whole}");
            for size in sizes(data) {
                assert_eq!(
                    relay(from, to, data, size),
                    whole,
                    "{from} to {to} by {size}"
                );
            }
            if let Ok(answer) = convert_answer(from, to, data, &context(to)) {
                let body = answer.pieces.into_bytes();
                let read = grammar::read(to, &body);
                read.unwrap_or_else(|wrong| panic!("{from} to {to}: {wrong}\n{body:?}"));
            }
        }
    }
}

fn relay(from: Dialect, to: Dialect, data: &[u8], size: usize) -> String {
    let mut transcoder = Transcoder::new(from, to, context(to));
    let mut out = ByteQueue::new();
    let mut result = Ok(());
    for piece in data.chunks(size) {
        result = transcoder.push(Bytes::copy_from_slice(piece), &mut out);
        if result.is_err() {
            break;
        }
    }
    if result.and_then(|()| transcoder.end(&mut out)).is_err() {
        transcoder.fail(&Failure::upstream_error(), "req_1", &mut out);
    }
    String::from_utf8(out.into_bytes().to_vec()).expect("what we write is UTF-8")
}

/// The native path promises less: bytes pass, and the output does not depend on how they were
/// split.
fn rewrite(dialect: Dialect, data: &[u8]) {
    let rewritten = |size: usize| -> (Bytes, Result<(), UnusableAnswer>) {
        let mut rewriter = Rewriter::new(dialect, identity(), true);
        let mut out = ByteQueue::new();
        let mut result = Ok(());
        for piece in data.chunks(size) {
            result = rewriter.push(Bytes::copy_from_slice(piece), &mut out);
            if result.is_err() {
                break;
            }
        }
        let result = result.and_then(|()| rewriter.end(&mut out));
        (out.into_bytes(), result)
    };
    let whole = rewritten(data.len().max(1));
    for size in sizes(data) {
        assert_eq!(rewritten(size), whole, "{dialect} in pieces of {size}");
    }
    let _ = rewrite_answer(dialect, Bytes::copy_from_slice(data), &identity());
}

fn identity() -> Identity {
    Identity {
        id: "id_ours".into(),
        model: PUBLIC.into(),
        created: 1_794_867_059,
    }
}

/// A client that asks for everything.
fn context(dialect: Dialect) -> AnswerContext {
    let reasoning = Reasoning {
        show: true,
        ..Reasoning::default()
    };
    let prefix = match dialect {
        Dialect::Chat => "chatcmpl_",
        Dialect::Responses => "resp_",
        Dialect::Messages => "msg_",
        Dialect::Generate => "gen_",
        Dialect::Interactions => "int_",
    };
    AnswerContext {
        id: format!("{prefix}ours").into(),
        model: PUBLIC.into(),
        created: 1_760_000_000,
        input_tokens: 40,
        request: Arc::new(Request {
            include_usage: true,
            reasoning: Some(reasoning),
            ..Request::default()
        }),
    }
}
