//! Properties of answers in the notation of Converse, for clients of every dialect.

use proptest::prelude::*;
use protocol::Dialect;
use protocol::canon::{Block, Delta, Event, Response, ResponseBlock, Stop};
use protocol::convert::convert_answer;
use protocol::event_stream::{Malformed, ToSse};
use protocol::messages::converse;
use serde_json::{Value, json};

use super::streams::{any_answer, build_response, common_content, relay, said};
use super::{MODEL, context};
use crate::grammar;

fn stop_reason(stop: &Stop) -> &'static str {
    match stop {
        Stop::Length => "max_tokens",
        Stop::ToolCalls => "tool_use",
        Stop::Refusal { .. } => "content_filtered",
        _ => "end_turn",
    }
}

fn usage(events: &[Event]) -> Value {
    let reported = events.iter().find_map(|event| match event {
        Event::Usage(usage) => Some(*usage),
        _ => None,
    });
    let usage = reported.unwrap();
    json!({
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cacheReadInputTokens": usage.cached_input,
        "totalTokens": usage.input + usage.output + usage.cached_input,
    })
}

/// A message of the stream.
fn framed(name: &str, payload: &Value) -> Vec<u8> {
    let mut headers = Vec::new();
    for (header, value) in [
        (":event-type", name),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ] {
        headers.push(u8::try_from(header.len()).unwrap());
        headers.extend_from_slice(header.as_bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    let mut message = length(headers.len() + payload.len() + 16).to_vec();
    message.extend(length(headers.len()));
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message.extend_from_slice(&headers);
    message.extend_from_slice(payload.as_bytes());
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message
}

fn upstream_stream(events: &[Event]) -> Vec<u8> {
    let mut stream = framed("messageStart", &json!({ "role": "assistant", "p": "abc" }));
    let mut index = 0;
    let mut open = None;
    for event in events {
        let delta = match event {
            Event::BlockStart(block) => {
                if let Block::ToolCall { id, name } = block {
                    let start = json!({ "toolUse": { "toolUseId": id, "name": name } });
                    let event = json!({ "contentBlockIndex": index, "start": start });
                    stream.extend(framed("contentBlockStart", &event));
                }
                open = Some(block.clone());
                continue;
            }
            Event::BlockStop => {
                let event = json!({ "contentBlockIndex": index });
                stream.extend(framed("contentBlockStop", &event));
                index += 1;
                continue;
            }
            Event::Delta(Delta::Text(text)) if open == Some(Block::Thought) => {
                json!({ "reasoningContent": { "text": text } })
            }
            Event::Delta(Delta::Opaque(opaque)) => {
                json!({ "reasoningContent": { "signature": opaque.text } })
            }
            Event::Delta(Delta::Text(text)) => json!({ "text": text }),
            Event::Delta(Delta::Arguments(text)) => json!({ "toolUse": { "input": text } }),
            Event::Finish(stop) => {
                let event = json!({ "stopReason": stop_reason(stop) });
                stream.extend(framed("messageStop", &event));
                let event = json!({ "usage": usage(events), "metrics": { "latencyMs": 9 } });
                stream.extend(framed("metadata", &event));
                continue;
            }
            _ => continue,
        };
        let event = json!({ "contentBlockIndex": index, "delta": delta, "p": "abcdef" });
        stream.extend(framed("contentBlockDelta", &event));
    }
    stream
}

/// The whole answer of an upstream with the content of `response`.
fn upstream_answer(response: &Response, usage: &Value) -> Vec<u8> {
    let write_block = |block: &ResponseBlock| match &block.kind {
        Block::ToolCall { id, name } => {
            let input: Value = serde_json::from_str(&block.text).unwrap();
            json!({ "toolUse": { "toolUseId": id, "name": name, "input": input } })
        }
        Block::Thought => {
            let mut thought = json!({ "text": block.text });
            if let Some(opaque) = &block.opaque {
                thought["signature"] = json!(opaque.text);
            }
            json!({ "reasoningContent": { "reasoningText": thought } })
        }
        _ => json!({ "text": block.text }),
    };
    let content: Vec<Value> = response.blocks.iter().map(write_block).collect();
    let answer = json!({
        "output": { "message": { "role": "assistant", "content": content } },
        "stopReason": stop_reason(&response.stop),
        "usage": usage,
        "metrics": { "latencyMs": 9 },
    });
    answer.to_string().into_bytes()
}

/// The stream in the form of a Messages upstream.
fn decoded(stream: &[u8], sizes: &[usize]) -> (Vec<u8>, Result<(), Malformed>) {
    let mut decoder = ToSse::from_converse();
    let mut events = Vec::new();
    let mut rest = stream;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(usize::MAX);
        let (piece, after) = rest.split_at(size.clamp(1, rest.len()));
        decoder.push(piece, &mut events).unwrap();
        rest = after;
    }
    (events, decoder.end())
}

fn any_case() -> impl Strategy<Value = (Dialect, Vec<Event>)> {
    (
        prop::sample::select(Dialect::ALL.to_vec()),
        any_answer(Dialect::Messages),
    )
}

proptest! {
    #[test]
    fn a_converse_stream_says_the_same_for_any_chunking(
        (to, events) in any_case(),
        sizes in prop::collection::vec(1_usize..90, 1..6),
    ) {
        let stream = upstream_stream(&events);
        let (whole, end) = decoded(&stream, &[]);
        prop_assert_eq!(end, Ok(()));
        prop_assert_eq!(&decoded(&stream, &sizes).0, &whole);
        let relayed = relay(Dialect::Messages, to, &whole, &sizes);
        prop_assert_eq!(&relayed.result, &Ok(()));
        let heard = grammar::read_stream(to, &relayed.text);
        prop_assert!(heard.is_ok(), "to {to}: {}\n{}", heard.unwrap_err(), relayed.text);
        prop_assert_eq!(common_content(&heard.unwrap()), said(Dialect::Messages, &events), "to {}", to);
        prop_assert!(relayed.summary.ended && relayed.summary.usage.is_some());
        prop_assert!(!relayed.text.contains("abcdef"), "{}", relayed.text);
    }

    #[test]
    fn a_whole_converse_answer_is_the_fold_of_its_stream((to, events) in any_case()) {
        let (stream, _) = decoded(&upstream_stream(&events), &[]);
        let streamed = relay(Dialect::Messages, to, &stream, &[]);
        let streamed = grammar::read_stream(to, &streamed.text).unwrap();
        let body = upstream_answer(&build_response(&events), &usage(&events));
        let body = converse::read_answer(&body).unwrap();
        let answer = convert_answer(Dialect::Messages, to, &body, &context(to, "ours", MODEL));
        let whole = grammar::read(to, &answer.unwrap().pieces.into_bytes());
        prop_assert!(whole.is_ok(), "to {to}: {}", whole.unwrap_err());
        prop_assert_eq!(whole.unwrap(), streamed, "to {}", to);
    }

    /// A truncated stream is never taken for a complete one. Its output so far is billed by our count.
    #[test]
    fn a_converse_stream_that_was_cut_has_not_ended(
        (to, events) in any_case(),
        at in any::<prop::sample::Index>(),
    ) {
        let stream = upstream_stream(&events);
        let (whole, end) = decoded(&stream[..at.index(stream.len())], &[]);
        let relayed = relay(Dialect::Messages, to, &whole, &[]);
        prop_assert!(end.is_err() || relayed.result.is_err());
        prop_assert!(relayed.summary.report().is_none());
        prop_assert_eq!(relayed.summary.counted(40).input_total(), 40);
    }
}
