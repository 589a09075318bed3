//! Generates random content of the two dialects: answers, requests, and meaningless streams.

use proptest::prelude::*;
use protocol::canon::{
    Block, Delta, Document, Effort, Event, Format, Image, ImageDetail, ImageSource, Opaque, Part,
    Path, Reasoning, Request, Response, ResponseBlock, Role, Sampling, Stop, Thought, Tool,
    ToolCall, ToolChoice, ToolResult, Turn,
};
use protocol::{Dialect, Usage};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cases::without_paths;

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
        // The text has no line ends that only some clients recognize, because the gateway escapes them. That
        // would change the text, but not its meaning.
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

/// A block that the dialect itself could have written.
fn any_block(own: Dialect) -> impl Strategy<Value = ResponseBlock> {
    let signed = prop::option::of(opaque(own));
    let whole_block = |kind, text, opaque| ResponseBlock {
        kind,
        text,
        opaque,
        citations: Vec::new(),
        logprobs: Vec::new(),
    };
    prop_oneof![
        any_text().prop_map(move |text| whole_block(Block::Text, text, None)),
        (any_text(), signed).prop_map(move |(text, opaque)| whole_block(
            Block::Thought,
            text,
            opaque
        )),
        ("[a-z_]{1,9}", any_arguments(), any::<u32>()).prop_map(move |(name, text, id)| {
            let id = format!("call_{id}");
            whole_block(Block::ToolCall { id, name }, text, None)
        }),
        Just(whole_block(
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

/// A response without adjacent blocks that would be read as one block.
pub(super) fn any_response(own: Dialect) -> impl Strategy<Value = Response> {
    let blocks = prop::collection::vec(any_block(own), 0..6);
    (blocks, any_usage(), any::<bool>()).prop_map(move |(mut blocks, usage, cut)| {
        if own == Dialect::Generate {
            blocks.dedup_by(|next, before| {
                let joins = next.kind == before.kind
                    && matches!(next.kind, Block::Text | Block::Thought)
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
            .any(|block| matches!(block.kind, Block::ToolCall { .. }));
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

/// The events of a response, with its texts cut into pieces.
pub(super) fn cut(response: Response, at: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for event in response.into_events() {
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

/// A conversation in which every call has a result.
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
                // In Generate Content, signatures are on calls and texts, and those on texts are
                // optional.
                Part::Thought(_) => own != Dialect::Generate,
                _ => true,
            };
            let mut model: Vec<Part> = model.into_iter().filter(is_said).collect();
            // Generate Content reads adjacent texts as one text.
            model.dedup_by(|next, before| {
                let texts = matches!((next, before), (Part::Text(_), Part::Text(_)));
                texts && own == Dialect::Generate
            });
            let results = model.iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some(Part::ToolResult(ToolResult {
                    call_id: call.id.clone(),
                    name: Some(call.name.clone()),
                    parts: without_paths(result.clone()),
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

pub(super) fn any_request(own: Dialect) -> impl Strategy<Value = Request> {
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
        show_is_default: false,
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

/// Streams of JSON with the names of the dialects in any place.
pub(super) fn any_nonsense() -> impl Strategy<Value = String> {
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

/// A value that resembles an event of either dialect.
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
