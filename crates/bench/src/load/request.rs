//! What the load generator asks.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

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
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Plain => "plain",
            Self::Stream => "stream",
            Self::Body => "body",
        })
    }
}

/// A request that differs from one time to the next in its key alone.
pub(crate) struct Request {
    before_key: String,
    after_key: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(shape: Shape, host: &str, path: &str, model: &str) -> Self {
        let body = body(shape, model);
        Self {
            before_key: format!("POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer "),
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

fn body(shape: Shape, model: &str) -> String {
    // Usage is asked for, so that every target sends the same events.
    let stream = match shape {
        Shape::Stream => r#""stream":true,"stream_options":{"include_usage":true},"#,
        Shape::Plain | Shape::Body => "",
    };
    let question = "Who pays the toll at night, and who writes it down?";
    let text = match shape {
        Shape::Body => document(),
        Shape::Plain | Shape::Stream => question.to_owned(),
    };
    format!(
        r#"{{"model":"{model}",{stream}"temperature":0.2,"max_tokens":200,"messages":[{{"role":"system","content":"You are the keeper of a toll gate. Answer in one sentence."}},{{"role":"user","content":"{text}"}}]}}"#
    )
}

/// A long text with the escapes that texts have, since a reader that meets none is flattered.
fn document() -> String {
    let line = r#"The clerk said \"one farthing\" and wrote it down; the cart rolled on towards the river.\n"#;
    line.repeat(LARGE_BODY_BYTES.div_ceil(line.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_of_their_shape() {
        for (shape, stream, size) in [
            (Shape::Plain, false, 200..400),
            (Shape::Stream, true, 200..400),
            (Shape::Body, false, 1_000_000..1_001_000),
        ] {
            let request = Request::new(shape, "localhost", "/v1", "maker/model");
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
