//! Properties of Generate Content and Interactions for any content.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::{Dropped, Event, Request, Target};
use protocol::convert::{Transcoder, convert_answer, read_request, write_request};
use protocol::native::UnusableAnswer;
use protocol::sse::{Data, Frame};
use protocol::{ByteQueue, Dialect, generate, interactions};
use serde_json::Value;

use crate::cases::{
    asking_for_thoughts, build_response, check_grammar, context, frames, profile, target,
};

mod any;

use any::{any_nonsense, any_request, any_response, cut};

const BOTH: [Dialect; 2] = [Dialect::Generate, Dialect::Interactions];

enum Reader {
    Generate(generate::Reader),
    Interactions(interactions::Reader),
}

impl Reader {
    fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Generate => Self::Generate(generate::Reader::new("maker/m")),
            _ => Self::Interactions(interactions::Reader::new("maker/m")),
        }
    }

    fn frame(&mut self, frame: &Frame, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        match self {
            Self::Generate(reader) => reader.frame(frame, out),
            Self::Interactions(reader) => reader.frame(frame, out),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        match self {
            Self::Generate(reader) => reader.end(out),
            Self::Interactions(reader) => reader.end(out),
        }
    }
}

fn read(dialect: Dialect, stream: &[u8]) -> (Vec<Event>, Result<(), UnusableAnswer>) {
    let mut reader = Reader::new(dialect);
    let mut events = Vec::new();
    let frames = frames(stream);
    let mut result = frames
        .iter()
        .try_for_each(|frame| reader.frame(frame, &mut events));
    if result.is_ok() {
        result = reader.end(&mut events);
    }
    (events, result)
}

fn written(dialect: Dialect, events: Vec<Event>, request: Request) -> Vec<u8> {
    let mut out = ByteQueue::new();
    let context = context(request);
    if dialect == Dialect::Generate {
        let mut writer = generate::Writer::new(context);
        for event in events {
            writer.event(event, &mut out);
        }
    } else {
        let mut writer = interactions::Writer::new(context);
        for event in events {
            writer.event(event, &mut out);
        }
    }
    out.into_bytes().to_vec()
}

fn data(frame: &Frame) -> Vec<u8> {
    match frame.data() {
        Data::Absent => Vec::new(),
        Data::Line(span) => frame.bytes[span].to_vec(),
        Data::Lines(lines) => lines.into_owned(),
    }
}

/// Checks that a stream meets the requirements of Generate Content clients.
fn check_generate(stream: &[u8]) {
    let text = std::str::from_utf8(stream).unwrap();
    assert!(!text.contains(['\u{85}', '\u{2028}', '\u{2029}']));
    let frames = frames(stream);
    for (number, frame) in frames.iter().enumerate() {
        assert!(frame.is_plain_data());
        let chunk: Value = serde_json::from_slice(&data(frame)).unwrap();
        let candidate = &chunk["candidates"][0];
        let parts = candidate["content"]["parts"].as_array().unwrap();
        assert!(!parts.is_empty(), "{chunk}");
        for part in parts {
            let kinds = ["text", "functionCall", "inlineData"];
            let kinds = kinds.iter().filter(|kind| part.get(kind).is_some());
            assert_eq!(kinds.count(), 1, "{part}");
            if let Some(call) = part.get("functionCall") {
                assert!(call["args"].is_object());
            }
        }
        assert_eq!(chunk["modelVersion"], "maker/m");
        assert_eq!(chunk["responseId"], "ours_1");
        let last = number + 1 == frames.len();
        assert_eq!(candidate.get("finishReason").is_some(), last, "{chunk}");
    }
}

/// Checks that a stream meets the requirements of Interactions clients.
fn check_interactions(stream: &[u8]) {
    let text = std::str::from_utf8(stream).unwrap();
    assert!(!text.contains(['\u{85}', '\u{2028}', '\u{2029}']));
    let frames = frames(stream);
    let (done, frames) = frames.split_last().unwrap();
    assert_eq!(&done.bytes[..], b"event: done\ndata: [DONE]\n\n");
    let mut open: Option<String> = None;
    let mut index = 0;
    let mut arguments = String::new();
    for (number, frame) in frames.iter().enumerate() {
        let event: Value = serde_json::from_slice(&data(frame)).unwrap();
        let name = event["event_type"].as_str().unwrap();
        assert_eq!(frame.event(), Some(name.as_bytes()));
        match name {
            "interaction.created" => assert_eq!(number, 0),
            "interaction.status_update" => assert_eq!(number, 1),
            "step.start" => {
                assert_eq!(event["index"], index);
                let kind = event["step"]["type"].as_str().unwrap().to_owned();
                assert!(open.replace(kind).is_none());
                arguments.clear();
            }
            "step.delta" => {
                assert_eq!(event["index"], index);
                let kind = event["delta"]["type"].as_str().unwrap();
                match open.as_deref().unwrap() {
                    "model_output" => assert!(["text", "image"].contains(&kind)),
                    "thought" => assert!(kind.starts_with("thought_")),
                    "function_call" => {
                        arguments += event["delta"]["arguments"].as_str().unwrap();
                    }
                    other => panic!("{other}"),
                }
            }
            "step.stop" => {
                assert_eq!(event["index"], index);
                if open.take().as_deref() == Some("function_call") && !arguments.is_empty() {
                    serde_json::from_str::<Value>(&arguments).unwrap();
                }
                index += 1;
            }
            "interaction.completed" => {
                assert_eq!(number + 1, frames.len());
                let interaction = &event["interaction"];
                assert_eq!(interaction["id"], "ours_1");
                assert!(interaction.get("steps").is_none());
                let status = interaction["status"].as_str().unwrap();
                assert!(["completed", "requires_action", "incomplete"].contains(&status));
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.is_none());
}

/// The next request of a client of this dialect: this answer, followed by the result of a tool.
fn sent_back(caller: Dialect, answer: &Value) -> Value {
    let tool = serde_json::json!({"x": 1});
    if caller == Dialect::Generate {
        let response = serde_json::json!({"functionResponse": {"name": "f", "response": tool}});
        serde_json::json!({"contents": [
            {"role": "user", "parts": [{"text": "Go"}]},
            answer["candidates"][0]["content"],
            {"role": "user", "parts": [response]},
        ]})
    } else {
        let mut input = vec![serde_json::json!({"type": "text", "text": "Go"})];
        input.extend(answer["steps"].as_array().unwrap().iter().cloned());
        input.push(
            serde_json::json!({"type": "function_result", "call_id": "call_a", "result": tool}),
        );
        serde_json::json!({"model": "maker/m", "input": input})
    }
}

#[test]
fn signatures_come_back_to_the_upstream_that_made_them() {
    let generate = serde_json::json!({"candidates": [{"content": {"role": "model", "parts": [
        {"text": "Let me look."},
        {"functionCall": {"id": "call_a", "name": "f", "args": {}}, "thoughtSignature": "T1BB+/VF"},
    ]}, "finishReason": "STOP"}]});
    let interactions = serde_json::json!({"status": "completed", "steps": [
        {"type": "thought", "signature": "T1BB+/VF"},
        {"type": "function_call", "id": "call_a", "name": "f", "arguments": {}},
    ]});
    for (caller, upstream, answer) in [
        (Dialect::Interactions, Dialect::Generate, generate),
        (Dialect::Generate, Dialect::Interactions, interactions),
    ] {
        let body = answer.to_string();
        let context = context(Request::default());
        let converted = convert_answer(upstream, caller, body.as_bytes(), &context).unwrap();
        let answer: Value = serde_json::from_slice(&converted.pieces.into_bytes()).unwrap();
        assert!(!answer.to_string().contains("T1BB"), "{answer}");

        let back = sent_back(caller, &answer).to_string();
        let request = read_request(caller, back.as_bytes(), false).unwrap();
        let sent = |model| {
            let profile = profile();
            let target = Target {
                public_model: model,
                ..target(&profile)
            };
            let mut dropped = Dropped::new(caller);
            let body = write_request(upstream, &request, &target, &mut dropped).unwrap();
            assert_eq!(dropped.is_empty(), model == "maker/m");
            serde_json::from_slice::<Value>(&body).unwrap()
        };
        let place = |body: &Value| match upstream {
            Dialect::Generate => body["contents"][1]["parts"][1]["thoughtSignature"].clone(),
            _ => body["input"][1]["signature"].clone(),
        };
        assert_eq!(place(&sent("maker/m")), "T1BB+/VF");
        assert_eq!(
            place(&sent("maker/other")),
            "skip_thought_signature_validator"
        );
    }
}

proptest! {
    #[test]
    fn a_dialect_reads_what_it_writes(
        generate in any_response(Dialect::Generate),
        interactions in any_response(Dialect::Interactions),
        at in 0..20_usize,
    ) {
        for (dialect, response) in BOTH.into_iter().zip([generate, interactions]) {
            let events = cut(response.clone(), at);
            let stream = written(dialect, events, asking_for_thoughts());
            match dialect {
                Dialect::Generate => check_generate(&stream),
                _ => check_interactions(&stream),
            }
            let (events, result) = read(dialect, &stream);
            prop_assert_eq!(result, Ok(()));
            check_grammar(&events, true);
            let built = build_response(events).unwrap().unwrap();
            prop_assert_eq!(&built, &response);
            let context = context(asking_for_thoughts());
            let whole = if dialect == Dialect::Generate {
                let whole = generate::write_response(&response, &context);
                generate::read_response(&whole, "maker/m")
            } else {
                let whole = interactions::write_response(&response, &context);
                interactions::read_response(&whole, "maker/m")
            };
            prop_assert_eq!(whole.unwrap(), response);
        }
    }

    #[test]
    fn requests_come_through_unchanged(
        generate in any_request(Dialect::Generate),
        interactions in any_request(Dialect::Interactions),
    ) {
        let profile = profile();
        let target = target(&profile);
        for (dialect, request) in BOTH.into_iter().zip([generate, interactions]) {
            let mut dropped = Dropped::new(dialect);
            let once = write_request(dialect, &request, &target, &mut dropped).unwrap();
            prop_assert!(dropped.is_empty(), "{dropped:?}");
            let again = read_request(dialect, &once, request.stream).unwrap();
            let twice = write_request(dialect, &again, &target, &mut dropped).unwrap();
            prop_assert_eq!(
                String::from_utf8(once).unwrap(),
                String::from_utf8(twice).unwrap()
            );
            prop_assert!(dropped.is_empty(), "{dropped:?}");
        }
    }

    #[test]
    fn chunks_may_be_cut_anywhere(
        response in any_response(Dialect::Generate),
        from_generate in any::<bool>(),
        sizes in prop::collection::vec(1..40_usize, 1..6),
    ) {
        let (from, to) = if from_generate {
            (Dialect::Generate, Dialect::Interactions)
        } else {
            (Dialect::Interactions, Dialect::Generate)
        };
        let stream = written(from, response.into_events().collect(), asking_for_thoughts());
        let convert = |sizes: &[usize]| {
            let mut transcoder = Transcoder::new(from, to, context(asking_for_thoughts()));
            let mut out = ByteQueue::new();
            let mut rest = Bytes::copy_from_slice(&stream);
            let mut sizes = sizes.iter().cycle();
            while !rest.is_empty() {
                let size = sizes.next().copied().unwrap_or(usize::MAX);
                let chunk = rest.split_to(size.min(rest.len()));
                transcoder.push(chunk, &mut out).unwrap();
            }
            transcoder.end(&mut out).unwrap();
            out.into_bytes()
        };
        let whole = convert(&[]);
        prop_assert_eq!(&convert(&sizes), &whole);
        match to {
            Dialect::Generate => check_generate(&whole),
            _ => check_interactions(&whole),
        }
    }

    #[test]
    fn events_keep_their_grammar_whatever_comes(stream in any_nonsense()) {
        for dialect in BOTH {
            let (events, result) = read(dialect, stream.as_bytes());
            check_grammar(&events, result.is_ok());
        }
    }
}
