//! The requests of the load generator.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::session_frames::SessionKind;

const LARGE_BODY_BYTES: usize = 1_000_000;

/// The kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shape {
    /// A small request and a small answer.
    Plain,
    /// A small request, a hundred chunks back.
    Stream,
    /// A request of a megabyte, a small answer.
    Body,
    /// Like `Plain`, but in a dialect that the upstream does not speak.
    Converted,
    /// Like `Stream`, but in a dialect that the upstream does not speak.
    ConvertedStream,
    /// A session with 20 ms of audio in each frame.
    Realtime,
    /// A session with 20 ms of audio in each binary frame; the answers are text.
    Transcript,
}

impl Shape {
    /// The kind of session; `None` for calls.
    pub(crate) fn session_kind(self) -> Option<SessionKind> {
        match self {
            Self::Realtime => Some(SessionKind::Realtime),
            Self::Transcript => Some(SessionKind::Transcript),
            Self::Plain | Self::Stream | Self::Body | Self::Converted | Self::ConvertedStream => {
                None
            }
        }
    }

    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::ConvertedStream)
    }

    /// Whether the gateway has to convert the request.
    pub(crate) fn is_converted(self) -> bool {
        matches!(self, Self::Converted | Self::ConvertedStream)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Chat,
    Messages,
}

impl Dialect {
    fn of(path: &str) -> Self {
        if path.ends_with("/messages") {
            Self::Messages
        } else {
            Self::Chat
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Plain => "plain",
            Self::Stream => "stream",
            Self::Body => "body",
            Self::Converted => "converted",
            Self::ConvertedStream => "converted-stream",
            Self::Realtime => "realtime",
            Self::Transcript => "transcript",
        })
    }
}

/// A request in which only the API key changes.
pub(crate) struct Request {
    before_key: String,
    after_key: String,
    pub(crate) body: Vec<u8>,
    pub(crate) language: Dialect,
}

impl Request {
    pub(crate) fn new(shape: Shape, host: &str, path: &str, model: &str) -> Self {
        let language = Dialect::of(path);
        let (body, credential) = match language {
            Dialect::Chat => (chat(shape, model), "authorization: Bearer "),
            Dialect::Messages => (messages(shape, model), "x-api-key: "),
        };
        Self {
            language,
            before_key: format!("POST {path} HTTP/1.1\r\nhost: {host}\r\n{credential}"),
            after_key: format!(
                "\r\ncontent-type: application/json\r\naccept: application/json\r\n\
                 user-agent: tollgate-bench\r\ncontent-length: {}\r\n\r\n",
                body.len()
            ),
            body: body.into_bytes(),
        }
    }

    pub(crate) fn write_head(&self, key: &str, head: &mut Vec<u8>) {
        head.clear();
        for piece in [&self.before_key, key, &self.after_key] {
            head.extend_from_slice(piece.as_bytes());
        }
    }
}

const SYSTEM: &str = "You are the keeper of a toll gate. Answer in one sentence.";
const QUESTION: &str = "Who pays the toll at night, and who writes it down?";

fn chat(shape: Shape, model: &str) -> String {
    // Requests usage, so that every target sends the same events.
    let stream = if shape.is_stream() {
        r#""stream":true,"stream_options":{"include_usage":true},"#
    } else {
        ""
    };
    let text = match shape {
        Shape::Body => document(),
        _ => QUESTION.to_owned(),
    };
    format!(
        r#"{{"model":"{model}",{stream}"temperature":0.2,"max_tokens":200,"messages":[{{"role":"system","content":"{SYSTEM}"}},{{"role":"user","content":"{text}"}}]}}"#
    )
}

/// The same request in the Messages dialect.
fn messages(shape: Shape, model: &str) -> String {
    let stream = if shape.is_stream() {
        r#""stream":true,"#
    } else {
        ""
    };
    format!(
        r#"{{"model":"{model}",{stream}"temperature":0.2,"max_tokens":200,"system":"{SYSTEM}","messages":[{{"role":"user","content":"{QUESTION}"}}]}}"#
    )
}

/// A long text with a realistic number of escapes. A text without escapes would make parsing look
/// faster than it is.
fn document() -> String {
    let line = r#"The clerk said \"one farthing\" and wrote it down; the cart rolled on towards the river.\n"#;
    line.repeat(LARGE_BODY_BYTES.div_ceil(line.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_of_their_shape() {
        for (shape, path, stream, size) in [
            (Shape::Plain, "/v1/x", false, 200..400),
            (Shape::Stream, "/v1/x", true, 200..400),
            (Shape::Body, "/v1/x", false, 1_000_000..1_001_000),
            (Shape::Converted, "/v1/x", false, 200..400),
            (Shape::ConvertedStream, "/v1/x", true, 200..400),
            (Shape::Converted, "/v1/messages", false, 200..400),
            (Shape::ConvertedStream, "/v1/messages", true, 200..400),
        ] {
            let request = Request::new(shape, "localhost", path, "maker/model");
            let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
            assert_eq!(body["model"], "maker/model");
            assert_eq!(body["stream"] == true, stream);
            assert!(
                size.contains(&request.body.len()),
                "{shape}: {}",
                request.body.len()
            );
        }
    }

    #[test]
    fn head_carries_the_key_and_the_length() {
        let request = Request::new(Shape::Plain, "localhost", "/v1/chat/completions", "m");
        let mut head = b"old".to_vec();
        request.write_head("sk-1", &mut head);
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
        assert!(head.contains("\r\nauthorization: Bearer sk-1\r\n"));
        assert!(head.ends_with(&format!(
            "\r\ncontent-length: {}\r\n\r\n",
            request.body.len()
        )));
    }
}
