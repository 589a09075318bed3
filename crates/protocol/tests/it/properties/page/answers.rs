//! Writes the part of `docs/conversion.md` about answers: where each dialect puts their content, their
//! usage and the stop reason.

use std::fmt::Write as _;

use protocol::canon::{Block, Likelihood, Opaque, Response, ResponseBlock, Stop, Token};
use protocol::{Dialect, Usage};
use serde_json::{Number, Value};

use super::super::{MODEL, upstream_answer};
use super::differences::differences;
use super::heading;

const CONTENT: &str = "
## Answers

Answers are converted back in the same way, plain and streamed. The tables name the members in which each protocol has the same thing; a
dash means that it has none, and the thing does not reach callers of that protocol. A picture is named in the text where a protocol has
no pictures. Opaque values, such as signatures of thoughts, travel wrapped with a mark of their origin, so that the caller can send
them back.

";
const USAGE: &str = "
Usage is counted in classes that do not overlap, and each is priced once ([billing](api/billing.md)). Each protocol has its own sums:

";
const ENDS: &str = "
Why an answer ended:

";

fn whole_block(kind: Block, text: &str) -> ResponseBlock {
    ResponseBlock {
        kind,
        text: text.to_owned(),
        opaque: None,
        citations: Vec::new(),
        logprobs: Vec::new(),
    }
}

fn opaque(dialect: Dialect) -> Opaque {
    Opaque {
        origin: dialect,
        model: MODEL.into(),
        text: "U0lHTkVE".into(),
    }
}

fn usage() -> Usage {
    Usage {
        input: 1000,
        output: 1000,
        reasoning: 500,
        ..Usage::default()
    }
}

fn response(blocks: Vec<ResponseBlock>, stop: Stop) -> Response {
    Response {
        blocks,
        stop,
        usage: Some(usage()),
    }
}

fn written(dialect: Dialect, response: &Response) -> Value {
    serde_json::from_slice(&upstream_answer(dialect, response)).unwrap()
}

/// A table cell with the places of the first answer that the second one does not have, or has with
/// another value.
fn places(dialect: Dialect, with: &Response, without: &Response) -> String {
    let (with, without) = (written(dialect, with), written(dialect, without));
    let places = differences(&with, &without);
    let words: Vec<_> = places.iter().map(|place| format!("`{place}`")).collect();
    if words.is_empty() {
        "-".to_owned()
    } else {
        words.join(", ")
    }
}

fn row(page: &mut String, name: &str, cell: impl Fn(Dialect) -> String) {
    let cells = Dialect::ALL.map(cell);
    writeln!(page, "| {name} | {} |", cells.join(" | ")).unwrap();
}

/// Adds a row with the places where answers of one block differ, with and without some content.
fn content_row(
    page: &mut String,
    name: &str,
    plain: &ResponseBlock,
    full: impl Fn(Dialect) -> ResponseBlock,
) {
    row(page, name, |dialect| {
        let answer = |block| response(vec![block], Stop::End);
        places(dialect, &answer(full(dialect)), &answer(plain.clone()))
    });
}

fn content(page: &mut String) {
    page.push_str(&heading("content", Dialect::ALL.into_iter()));
    let text = whole_block(Block::Text, "said");
    let thought = whole_block(Block::Thought, "thought");
    let call = whole_block(
        Block::ToolCall {
            id: "call_1".to_owned(),
            name: "f".to_owned(),
        },
        "{\"x\":1}",
    );
    let other = whole_block(Block::Text, "other");
    content_row(page, "text", &other, |_| text.clone());
    content_row(page, "source of a text", &text, |_| ResponseBlock {
        citations: vec![("https://example.com".to_owned(), "title".to_owned(), 0, 4)],
        ..text.clone()
    });
    content_row(page, "log probabilities", &text, |_| ResponseBlock {
        logprobs: vec![Token {
            chosen: Likelihood {
                token: "said".to_owned(),
                bytes: None,
                logprob: Number::from(-1),
            },
            top: Vec::new(),
        }],
        ..text.clone()
    });
    let longer = whole_block(Block::Thought, "another thought");
    content_row(page, "thought", &longer, |_| thought.clone());
    content_row(page, "signature of a thought", &thought, |dialect| {
        ResponseBlock {
            opaque: Some(opaque(dialect)),
            ..thought.clone()
        }
    });
    let renamed = whole_block(
        Block::ToolCall {
            id: "call_1".to_owned(),
            name: "g".to_owned(),
        },
        "{\"x\":1}",
    );
    content_row(page, "name of a tool call", &renamed, |_| call.clone());
    let argued = ResponseBlock {
        text: "{\"x\":2}".to_owned(),
        ..call.clone()
    };
    content_row(page, "arguments of a tool call", &argued, |_| call.clone());
    let refusal = whole_block(Block::Refusal, "no");
    let refused = whole_block(Block::Refusal, "no more");
    content_row(page, "refusal", &refused, |_| refusal.clone());
    let mime = || "image/png".to_owned();
    let picture = whole_block(Block::Image { mime: mime() }, "iVBORw0KGgo=");
    let another = whole_block(Block::Image { mime: mime() }, "iVBORw0KGgoA");
    content_row(page, "picture", &another, |_| picture.clone());
}

fn usage_classes(page: &mut String) {
    page.push_str(&heading("tokens", Dialect::ALL.into_iter()));
    // The usual usage with one more token of a class.
    let more = |change: fn(&mut Usage)| {
        let mut usage = usage();
        change(&mut usage);
        usage
    };
    for (name, more) in [
        ("fresh input", more(|it| it.input += 1)),
        ("input read from a cache", more(|it| it.cached_input += 1)),
        ("input written to a cache", more(|it| it.cache_write += 1)),
        (
            "input written to a cache for an hour",
            more(|it| it.cache_write_1h += 1),
        ),
        ("image input", more(|it| it.image_input += 1)),
        ("audio input", more(|it| it.audio_input += 1)),
        ("output", more(|it| it.output += 1)),
        (
            "reasoning, a part of the output",
            more(|it| it.reasoning += 1),
        ),
        ("image output", more(|it| it.image_output += 1)),
        ("audio output", more(|it| it.audio_output += 1)),
    ] {
        row(page, name, |dialect| {
            let plain = response(vec![whole_block(Block::Text, "said")], Stop::End);
            let fuller = Response {
                usage: Some(more),
                ..plain.clone()
            };
            places(dialect, &fuller, &plain)
        });
    }
}

/// The values of the members that say why an answer ended.
fn end(dialect: Dialect, answer: &Value) -> String {
    let places: &[&str] = match dialect {
        Dialect::Chat => &["/choices/0/finish_reason"],
        Dialect::Responses => &["/status", "/incomplete_details/reason"],
        Dialect::Messages => &["/stop_reason"],
        Dialect::Generate => &["/candidates/0/finishReason", "/promptFeedback/blockReason"],
        Dialect::Interactions => &["/status"],
    };
    let words = places
        .iter()
        .filter_map(|place| answer.pointer(place)?.as_str());
    let words: Vec<_> = words.map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

fn ends(page: &mut String) {
    page.push_str(&heading("end", Dialect::ALL.into_iter()));
    let text = || vec![whole_block(Block::Text, "said")];
    let call = || {
        let name = "f".to_owned();
        let id = "call_1".to_owned();
        vec![whole_block(Block::ToolCall { id, name }, "{}")]
    };
    for (name, blocks, stop) in [
        ("the model has finished", text(), Stop::End),
        (
            "a stop sequence",
            text(),
            Stop::Sequence(Some("END".to_owned())),
        ),
        ("the output limit", text(), Stop::Length),
        ("the context window is full", text(), Stop::ContextFull),
        ("the model calls tools", call(), Stop::ToolCalls),
        (
            "the model refused",
            text(),
            Stop::Refusal { category: None },
        ),
        ("a filter blocked the answer", text(), Stop::Filter(None)),
        ("the upstream paused", text(), Stop::Paused),
    ] {
        let response = response(blocks, stop);
        row(page, name, |dialect| {
            end(dialect, &written(dialect, &response))
        });
    }
}

pub(super) fn write(page: &mut String) {
    page.push_str(CONTENT);
    content(page);
    page.push_str(USAGE);
    usage_classes(page);
    page.push_str(ENDS);
    ends(page);
}
