//! What holds for Generate Content and Interactions whatever is said in them.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::{
    Block, Delta, Document, Dropped, Effort, Event, Folded, Format, Image, ImageDetail,
    ImageSource, Opaque, Part, Path, Reasoning, Request, Response, Role, Sampling, Stop, Target,
    Thought, Tool, ToolCall, ToolChoice, ToolResult, Turn,
};
use protocol::convert::{Transcoder, convert_answer, read_request, write_request};
use protocol::native::Broken;
use protocol::sse::{Data, Frame};
use protocol::{ByteQueue, Dialect, Usage, generate, interactions};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cases::{at_nowhere, check_grammar, echo, fold, frames, profile, target};

const BOTH: [Dialect; 2] = [Dialect::Generate, Dialect::Interactions];

/// A dialect's reader of streams.
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

    fn frame(&mut self, frame: &Frame, out: &mut Vec<Event>) -> Result<(), Broken> {
        match self {
            Self::Generate(reader) => reader.frame(frame, out),
            Self::Interactions(reader) => reader.frame(frame, out),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), Broken> {
        match self {
            Self::Generate(reader) => reader.end(out),
            Self::Interactions(reader) => reader.end(out),
        }
    }
}

fn read(dialect: Dialect, stream: &[u8]) -> (Vec<Event>, Result<(), Broken>) {
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

fn asking_for_thoughts() -> Request {
    Request {
        reasoning: Some(Reasoning {
            show: true,
            ..Reasoning::default()
        }),
        ..Request::default()
    }
}

fn written(dialect: Dialect, events: Vec<Event>, request: Request) -> Vec<u8> {
    let mut out = ByteQueue::new();
    let echo = echo(request);
    if dialect == Dialect::Generate {
        let mut writer = generate::Writer::new(echo);
        for event in events {
            writer.event(event, &mut out);
        }
    } else {
        let mut writer = interactions::Writer::new(echo);
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

/// What clients of Generate Content demand of a stream.
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

/// What clients of Interactions demand of a stream.
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

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zé ]{1,12}",
        Just("line\nend \"quoted\" \\ \u{2028}\u{2029}\u{85}\u{1f600}".to_owned()),
        any::<String>().prop_filter("not empty", |text| !text.is_empty()),
    ]
}

fn any_arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{}".to_owned()),
        // Line ends that only some clients know are escaped on the way, which changes no meaning.
        "[a-zé \"\\\\\n]{0,9}"
            .prop_map(|text| serde_json::json!({ "a b": [1, text], "n": null }).to_string()),
    ]
}

fn opaque(origin: Dialect) -> impl Strategy<Value = Opaque> {
    "[A-Za-z0-9+/]{4,40}".prop_map(move |text| Opaque {
        origin,
        model: "maker/m".into(),
        text: text.into(),
    })
}

/// A block as the dialect itself could have written it.
fn any_block(own: Dialect) -> impl Strategy<Value = Folded> {
    let signed = prop::option::of(opaque(own));
    let folded = |block, text, opaque| Folded {
        block,
        text,
        opaque,
        citations: Vec::new(),
        logprobs: Vec::new(),
    };
    prop_oneof![
        any_text().prop_map(move |text| folded(Block::Text, text, None)),
        (any_text(), signed).prop_map(move |(text, opaque)| folded(Block::Thought, text, opaque)),
        ("[a-z_]{1,9}", any_arguments(), any::<u32>()).prop_map(move |(name, text, id)| {
            let id = format!("call_{id}");
            folded(Block::ToolCall { id, name }, text, None)
        }),
        Just(folded(
            Block::Image {
                mime: "image/png".to_owned()
            },
            "iVBORw0K".to_owned(),
            None
        )),
    ]
}

fn any_usage() -> impl Strategy<Value = Option<Usage>> {
    prop::option::of((0..99_u64, 0..99_u64, 0..99_u64).prop_map(
        |(input, cached_input, reasoning)| Usage {
            input,
            cached_input,
            output: reasoning + 5,
            reasoning,
            image_input: 2,
            ..Usage::default()
        },
    ))
}

/// A response in which blocks that would be read as one are one.
fn any_response(own: Dialect) -> impl Strategy<Value = Response> {
    let blocks = prop::collection::vec(any_block(own), 0..6);
    (blocks, any_usage(), any::<bool>()).prop_map(move |(mut blocks, usage, cut)| {
        if own == Dialect::Generate {
            blocks.dedup_by(|next, before| {
                let joins = next.block == before.block
                    && matches!(next.block, Block::Text | Block::Thought)
                    && before.opaque.is_none();
                if joins {
                    before.text.push_str(&next.text);
                    before.opaque = next.opaque.take();
                }
                joins
            });
        }
        let calls = blocks
            .iter()
            .any(|folded| matches!(folded.block, Block::ToolCall { .. }));
        let stop = match (calls, cut) {
            (true, _) => Stop::ToolCalls,
            (false, true) => Stop::Length,
            (false, false) => Stop::End,
        };
        Response {
            blocks,
            stop,
            usage,
        }
    })
}

/// The events of a response, its texts cut in pieces.
fn cut(response: Response, at: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for event in response.unfold() {
        match event {
            Event::Delta(Delta::Text(text)) => {
                let cut = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
                let (first, second) = text.split_at(cut);
                for piece in [first, second] {
                    if !piece.is_empty() {
                        events.push(Event::Delta(Delta::Text(piece.to_owned())));
                    }
                }
            }
            event => events.push(event),
        }
    }
    events
}

/// A turn of the conversation and what it may hold.
fn any_part(own: Dialect, number: usize) -> impl Strategy<Value = Part> {
    let image = prop_oneof![
        Just(ImageSource::Url("https://example.com/a.png".to_owned())),
        Just(ImageSource::Inline {
            mime: "image/png".to_owned(),
            data: "iVBORw0K".to_owned(),
        }),
    ];
    prop_oneof![
        4 => any_text().prop_map(Part::Text),
        1 => image.prop_map(|source| {
            let detail = Some(ImageDetail::High);
            Part::Image(Image { source, detail })
        }),
        1 => Just(Part::Document(Document {
            mime: "application/pdf".to_owned(),
            data: "JVBERg==".to_owned(),
            name: None,
        })),
        1 => (any_text(), opaque(own)).prop_map(|(text, opaque)| Part::Thought(Thought {
            text,
            opaque: Some(opaque),
            redacted: false,
        })),
        2 => (any_arguments(), prop::option::of(opaque(own))).prop_map(move |(arguments, opaque)| {
            Part::ToolCall(ToolCall { signed_at: protocol::canon::SignedAt::default(),
                id: format!("call_{number}"),
                name: "f".to_owned(),
                arguments,
                opaque,
            })
        }),
    ]
}

fn any_result() -> impl Strategy<Value = (Vec<Part>, bool)> {
    let said = prop_oneof![
        any_text(),
        Just(r#"{"result":"21C"}"#.to_owned()),
        Just(r#"{"output":"21C"}"#.to_owned()),
        Just(r#"{"error":"x","y":1}"#.to_owned()),
    ];
    (prop::option::of(said), any::<bool>())
        .prop_map(|(said, is_error)| (said.into_iter().map(Part::Text).collect(), is_error))
}

/// A conversation in which each call is answered.
fn any_turns(own: Dialect) -> impl Strategy<Value = Vec<Turn>> {
    let model = (0..4_usize).prop_flat_map(move |length| {
        (0..length)
            .map(|number| any_part(own, number))
            .collect::<Vec<_>>()
    });
    let exchange = (any_text(), model, any_result());
    prop::collection::vec(exchange, 1..4).prop_map(move |exchanges| {
        let mut turns = Vec::new();
        let path = Path::item("messages", 0);
        let all = |parts: Vec<Part>| parts.into_iter().map(|part| (path, part)).collect();
        for (said, model, (result, is_error)) in exchanges {
            let mut user = vec![Part::Text(said)];
            user.extend(
                model
                    .iter()
                    .filter(|part| matches!(part, Part::Image(_) | Part::Document(_)))
                    .cloned(),
            );
            turns.push(Turn {
                role: Role::User,
                parts: all(user),
            });
            let is_said = |part: &Part| match part {
                Part::Image(_) | Part::Document(_) => false,
                // Signatures stand on calls and texts there, and those on texts are optional.
                Part::Thought(_) => own != Dialect::Generate,
                _ => true,
            };
            let mut model: Vec<Part> = model.into_iter().filter(is_said).collect();
            // Texts that follow one another are one there.
            model.dedup_by(|next, before| {
                let texts = matches!((next, before), (Part::Text(_), Part::Text(_)));
                texts && own == Dialect::Generate
            });
            let results = model.iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some(Part::ToolResult(ToolResult {
                    call_id: call.id.clone(),
                    name: Some(call.name.clone()),
                    parts: at_nowhere(result.clone()),
                    is_error,
                })),
                _ => None,
            });
            let results: Vec<Part> = results.collect();
            for (role, parts) in [(Role::Assistant, model), (Role::User, results)] {
                if !parts.is_empty() {
                    let parts = all(parts);
                    turns.push(Turn { role, parts });
                }
            }
        }
        turns
    })
}

fn any_request(own: Dialect) -> impl Strategy<Value = Request> {
    let choice = prop_oneof![
        Just(None),
        Just(Some(ToolChoice::None)),
        Just(Some(ToolChoice::Required)),
        Just(Some(ToolChoice::Named("f".to_owned()))),
        any::<bool>().prop_map(|required| Some(ToolChoice::Allowed {
            names: vec!["f".to_owned(), "g".to_owned()],
            required
        })),
    ];
    let format = prop_oneof![
        Just(None),
        Just(Some(Format::Json)),
        Just(Some(Format::Schema {
            name: None,
            description: None,
            schema: RawValue::from_string(r#"{"type":"object"}"#.to_owned()).unwrap(),
            strict: None,
        })),
    ];
    let reasoning = prop::option::of(any::<bool>().prop_map(|show| Reasoning {
        show_is_unsaid: false,
        effort: Some(Effort::High),
        budget_tokens: None,
        show,
    }));
    let system = prop::option::of(any_text());
    let numbers = (
        prop::option::of(1..9999_u64),
        prop::option::of(any::<i64>()),
    );
    (any_turns(own), choice, format, reasoning, system, numbers).prop_map(
        move |(mut turns, tool_choice, format, reasoning, system, (limit, seed))| {
            if let Some(text) = system {
                let parts = vec![(Path::default(), Part::Text(text))];
                let role = Role::System;
                turns.insert(0, Turn { role, parts });
            }
            let tool = |name: &str| Tool {
                path: Path::default(),
                name: name.to_owned(),
                description: Some("d".to_owned()),
                parameters: None,
                strict: None,
            };
            Request {
                stream: true,
                turns,
                tools: vec![tool("f"), tool("g")],
                tool_choice,
                format,
                reasoning,
                output_tokens_max: limit,
                sampling: Sampling {
                    temperature: "0.5".parse().ok(),
                    seed,
                    ..Sampling::default()
                },
                stop: vec!["end".to_owned()],
                ..Request::default()
            }
        },
    )
}

/// What the caller of one dialect sends when it has got this answer and has a tool's result.
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
        let echo = echo(Request::default());
        let converted = convert_answer(upstream, caller, body.as_bytes(), &echo).unwrap();
        let told: Value = serde_json::from_slice(&converted.pieces.into_bytes()).unwrap();
        assert!(!told.to_string().contains("T1BB"), "{told}");

        let back = sent_back(caller, &told).to_string();
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
    fn what_a_dialect_writes_it_reads(
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
            let folded = fold(events).unwrap().unwrap();
            prop_assert_eq!(&folded, &response);
            let echo = echo(asking_for_thoughts());
            let whole = if dialect == Dialect::Generate {
                let whole = generate::write_response(&response, &echo);
                generate::read_response(&whole, "maker/m")
            } else {
                let whole = interactions::write_response(&response, &echo);
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
        let stream = written(from, response.unfold().collect(), asking_for_thoughts());
        let convert = |sizes: &[usize]| {
            let mut transcoder = Transcoder::new(from, to, echo(asking_for_thoughts()));
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

/// Streams of JSON in which the words of the dialects stand anywhere.
fn any_nonsense() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "candidates",
        "content",
        "parts",
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "name",
        "args",
        "id",
        "inlineData",
        "mimeType",
        "data",
        "finishReason",
        "usageMetadata",
        "promptTokenCount",
        "promptFeedback",
        "blockReason",
        "responseId",
        "groundingMetadata",
        "citationMetadata",
        "event_type",
        "step.start",
        "step.delta",
        "step.stop",
        "index",
        "interaction.created",
        "interaction.completed",
        "interaction",
        "status",
        "completed",
        "failed",
        "steps",
        "step",
        "type",
        "model_output",
        "function_call",
        "thought",
        "arguments",
        "arguments_delta",
        "delta",
        "thought_summary",
        "thought_signature",
        "signature",
        "summary",
        "usage",
        "total_input_tokens",
        "image",
        "STOP",
        "image/png",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_u64).prop_map(Value::from),
        word.clone().prop_map(Value::from),
        Just(Value::from("\u{1f600}")),
    ];
    let tree = leaf.prop_recursive(5, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(Value::from_iter),
        ]
    });
    let event = (any_event(), tree).prop_map(|(mut event, tree)| {
        if let (Value::Object(event), Value::Object(tree)) = (&mut event, tree) {
            event.extend(tree);
        }
        format!("data: {event}\n\n")
    });
    prop::collection::vec(event, 0..8).prop_map(|events| events.concat())
}

/// Something near to an event of either dialect.
fn any_event() -> impl Strategy<Value = Value> {
    use serde_json::json;
    let part = prop_oneof![
        Just(json!({"text": "a"})),
        Just(json!({"text": "b", "thought": true})),
        Just(json!({"text": "", "thoughtSignature": "c2ln"})),
        Just(json!({"functionCall": {"name": "f"}, "thoughtSignature": "c2ln"})),
        Just(json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})),
    ];
    let delta = prop_oneof![
        Just(json!({"type": "text", "text": "a"})),
        Just(json!({"type": "thought_summary", "content": {"type": "text", "text": "b"}})),
        Just(json!({"type": "thought_signature", "signature": "c2ln"})),
        Just(json!({"type": "arguments_delta", "arguments": "{}"})),
        Just(json!({"type": "image", "mime_type": "image/png", "data": "AAAA"})),
    ];
    let step = prop_oneof![
        Just(json!({"type": "model_output", "content": [{"type": "text", "text": "a"}]})),
        Just(json!({"type": "thought"})),
        Just(json!({"type": "function_call", "id": "a", "name": "f", "arguments": {}})),
        Just(json!({"type": "google_search_call"})),
    ];
    prop_oneof![
        prop::collection::vec(part, 0..4)
            .prop_map(|parts| json!({"candidates": [{"content": {"parts": parts}}]})),
        Just(json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1}})),
        (0..3_u64, step)
            .prop_map(|(index, step)| json!({"event_type": "step.start", "index": index, "step": step})),
        (0..3_u64, delta)
            .prop_map(|(index, delta)| json!({"event_type": "step.delta", "index": index, "delta": delta})),
        (0..3_u64).prop_map(|index| json!({"event_type": "step.stop", "index": index, "usage": {"total_input_tokens": 1}})),
        Just(json!({"event_type": "interaction.completed", "interaction": {"status": "completed", "usage": {"total_input_tokens": 1}}})),
    ]
}
