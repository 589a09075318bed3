//! Properties of every request, answer and stream.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::{
    Block, Document, Dropped, Effort, Event, Image, ImageSource, Opaque, Part, Path, Reasoning,
    Request, Response, ResponseBlock, Role, Sampling, Stop, Target, Thought, Tool, ToolCall,
    ToolChoice, ToolResult, Turn, pair_results,
};
use protocol::messages::{Reader, read_response, write_request, write_response};
use protocol::sse::Splitter;
use protocol::{Dialect, Profile, Thinking, Usage};

use super::answers::{build_response, context, write_stream};
use super::grammar;
use super::requests::read_request;

use crate::cases::without_paths;

fn any_text() -> impl Strategy<Value = String> {
    "[a-zA-Z .,\"\\\\\n\u{2028}é界😀]{1,20}"
}

fn any_object() -> impl Strategy<Value = String> {
    prop::collection::btree_map("[a-z]{1,4}", "[a-z\"\\\\ é]{0,9}", 0..3)
        .prop_map(|map| serde_json::to_string(&map).unwrap())
}

fn own(text: String) -> Opaque {
    Opaque {
        origin: Dialect::Messages,
        model: "maker/m".into(),
        text: text.into(),
    }
}

/// Blocks that this dialect can express exactly.
fn any_block() -> impl Strategy<Value = ResponseBlock> {
    let whole_block = |kind, text, opaque| ResponseBlock {
        kind,
        text,
        opaque,
        citations: Vec::new(),
        logprobs: Vec::new(),
    };
    prop_oneof![
        any_text().prop_map(move |text| whole_block(Block::Text, text, None)),
        (any_text(), prop::option::of("[A-Za-z0-9+/]{4,12}={0,2}"))
            .prop_map(move |(text, value)| whole_block(Block::Thought, text, value.map(own))),
        "(redacted:)?[A-Za-z0-9+/]{4,12}".prop_map(move |value| whole_block(
            Block::Thought,
            String::new(),
            Some(own(value))
        )),
        ("[a-zA-Z0-9_-]{1,12}", "[a-z_]{1,8}", any_object()).prop_map(move |(id, name, text)| {
            whole_block(Block::ToolCall { id, name }, text, None)
        }),
    ]
}

fn any_usage() -> impl Strategy<Value = Usage> {
    (0..9_u64, 0..9_u64, 0..9_u64, 5..9_u64, 0..5_u64).prop_map(
        |(input, cached_input, cache_write, output, reasoning)| Usage {
            input,
            cached_input,
            cache_write,
            output,
            reasoning,
            ..Usage::default()
        },
    )
}

/// Answers that this dialect can express exactly.
fn any_answer() -> impl Strategy<Value = Response> {
    let stop = prop_oneof![
        3 => Just(Stop::End),
        1 => any_text().prop_map(|text| Stop::Sequence(Some(text))),
        1 => Just(Stop::Length),
        1 => Just(Stop::ContextFull),
        1 => Just(Stop::Paused),
        1 => prop::option::of(prop::sample::select(vec!["bio", "cyber", "frontier_llm"]))
            .prop_map(|category| Stop::Refusal { category: category.map(str::to_owned) }),
    ];
    (prop::collection::vec(any_block(), 0..6), stop, any_usage()).prop_map(
        |(blocks, stop, usage)| {
            let calls = |block: &ResponseBlock| matches!(block.kind, Block::ToolCall { .. });
            let stop = match stop {
                Stop::End if blocks.iter().any(calls) => Stop::ToolCalls,
                stop => stop,
            };
            Response {
                blocks,
                stop,
                usage: Some(usage),
            }
        },
    )
}

/// Reads a stream in pieces whose sizes are those in `sizes`, in a cycle. The second value is `false`
/// if the stream breaks.
fn read_stream(stream: &str, sizes: &[usize]) -> (Vec<Event>, bool) {
    let mut reader = Reader::new("maker/m");
    let mut splitter = Splitter::default();
    let mut events = Vec::new();
    let mut rest = Bytes::copy_from_slice(stream.as_bytes());
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(usize::MAX);
        splitter.push(rest.split_to(size.clamp(1, rest.len())));
        while let Some(frame) = splitter.next_frame().unwrap() {
            if reader.frame(&frame, &mut events).is_err() {
                return (events, false);
            }
        }
    }
    let whole = reader.end(&mut events).is_ok();
    (events, whole)
}

/// Checks the grammar of the events so far.
fn is_grammatical(events: &[Event], whole: bool) -> bool {
    let mut inside = false;
    for (at, event) in events.iter().enumerate() {
        let fits = match event {
            Event::Start => at == 0,
            Event::BlockStart(_) => !std::mem::replace(&mut inside, true),
            Event::Delta(_) => inside,
            Event::BlockStop => std::mem::replace(&mut inside, false),
            Event::Usage(_) => !inside,
            Event::Finish(_) | Event::Failed(_) => !inside && at + 1 == events.len(),
        };
        if !fits || (at == 0) != matches!(event, Event::Start) {
            return false;
        }
    }
    whole == matches!(events.last(), Some(Event::Finish(_)))
}

/// Streams of plausible and of strange events.
fn any_event_stream() -> impl Strategy<Value = String> {
    let block = prop::sample::select(vec![
        r#"{"type":"text","text":""}"#,
        r#"{"type":"text","text":"x"}"#,
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        r#"{"type":"redacted_thinking","data":"x"}"#,
        r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#,
        r#"{"type":"server_tool_use","id":"t","name":"f","input":{}}"#,
        "{}",
    ]);
    let delta = prop::sample::select(vec![
        r#"{"type":"text_delta","text":"a"}"#,
        r#"{"type":"text_delta"}"#,
        r#"{"type":"thinking_delta","thinking":"b"}"#,
        r#"{"type":"signature_delta","signature":"c"}"#,
        r#"{"type":"input_json_delta","partial_json":"{}"}"#,
        r#"{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"u"}}"#,
        r#"{"type":"new_delta"}"#,
    ]);
    let event = prop_oneof![
        1 => Just(r#"{"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}"#.to_owned()),
        4 => (0..3_u8, block).prop_map(|(index, block)| {
            format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
        }),
        6 => (0..3_u8, delta).prop_map(|(index, delta)| {
            format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
        }),
        4 => (0..3_u8).prop_map(|index| format!(r#"{{"type":"content_block_stop","index":{index}}}"#)),
        1 => Just(r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"e"}},"usage":{"output_tokens":3}}"#.to_owned()),
        1 => Just(r#"{"type":"message_stop"}"#.to_owned()),
        1 => Just(r#"{"type":"ping"}"#.to_owned()),
    ];
    prop::collection::vec(event, 0..20).prop_map(|events| {
        let frame = |event: &String| format!("data: {event}\n\n");
        events.iter().map(frame).collect()
    })
}

fn any_part() -> impl Strategy<Value = Part> {
    let thought = (
        any_text(),
        prop::option::of("[A-Za-z0-9]{4}"),
        any::<bool>(),
    );
    let image = prop_oneof![
        "https://[a-z]{3}\\.example/[a-z]".prop_map(ImageSource::Url),
        "[A-Za-z0-9]{4}".prop_map(|data| ImageSource::Inline {
            mime: "image/png".to_owned(),
            data
        }),
    ];
    prop_oneof![
        4 => any_text().prop_map(Part::Text),
        1 => any_text().prop_map(Part::Refusal),
        1 => image.prop_map(|source| Part::Image(Image { source, detail: None })),
        1 => "[A-Za-z0-9]{4}".prop_map(|data| Part::Document(Document {
            mime: "application/pdf".to_owned(),
            data,
            name: None,
        })),
        1 => thought.prop_map(|(text, value, redacted)| Part::Thought(Thought {
            text: if redacted { String::new() } else { text },
            opaque: value.map(own),
            redacted,
        })),
        2 => (0..6_u8, "[a-z]{1,5}", any_object()).prop_map(|(id, name, arguments)| {
            Part::ToolCall(ToolCall { id: format!("c.{id}"), name, arguments, opaque: None, signed_at: protocol::canon::SignedAt::default() })
        }),
        2 => (0..6_u8, prop::collection::vec(any_text().prop_map(Part::Text), 0..3), any::<bool>())
            .prop_map(|(id, parts, is_error)| Part::ToolResult(ToolResult {
                call_id: format!("c.{id}"),
                name: None,
                parts: without_paths(parts),
                is_error,
            })),
        1 => Just(Part::Foreign),
    ]
}

fn any_turns() -> impl Strategy<Value = Vec<Turn>> {
    let role = prop::sample::select(vec![
        Role::User,
        Role::User,
        Role::Assistant,
        Role::Assistant,
        Role::System,
        Role::Developer,
    ]);
    let turn = (role, prop::collection::vec(any_part(), 0..4));
    prop::collection::vec(turn, 1..7).prop_map(|turns| {
        let turns = turns
            .into_iter()
            .enumerate()
            .map(|(number, (role, parts))| {
                let path = Path::item("messages", number);
                let fits = |part: &Part| match part {
                    Part::ToolCall(_) | Part::Thought(_) => role == Role::Assistant,
                    Part::ToolResult(_) => role == Role::User,
                    _ => true,
                };
                let parts = parts.into_iter().filter(fits).enumerate();
                Turn {
                    role,
                    parts: parts
                        .map(|(at, part)| (path.inner("content", at), part))
                        .collect(),
                }
            });
        turns.collect()
    })
}

fn any_request() -> impl Strategy<Value = Request> {
    let tools = prop::collection::vec(
        (
            "[a-z]{1,5}",
            prop::option::of(any_text()),
            prop::option::of(any::<bool>()),
        ),
        0..3,
    );
    let choice = prop::option::of(prop::sample::select(vec![
        ToolChoice::Auto,
        ToolChoice::None,
        ToolChoice::Required,
    ]));
    let efforts = vec![
        Effort::None,
        Effort::Minimal,
        Effort::Low,
        Effort::High,
        Effort::Max,
    ];
    let reasoning = (
        prop::option::of(prop::sample::select(efforts)),
        prop::option::of(0..40_000_u64),
        any::<bool>(),
    );
    let sampling = (
        prop::option::of(0..20_u8),
        prop::option::of(1..10_u8),
        prop::option::of(0..9_u64),
    );
    let limit = prop::option::of(1..9000_u64);
    let rest = (
        prop::collection::vec(" {0,1}[a-z]{0,3}", 0..3),
        any::<bool>(),
        prop::option::of("[a-z]{3}"),
    );
    (
        any_turns(),
        tools,
        choice,
        prop::option::of(reasoning),
        sampling,
        limit,
        rest,
    )
        .prop_map(
            |(turns, tools, tool_choice, reasoning, sampling, output_tokens_max, rest)| {
                let tenths =
                    |tenths: u8| format!("{}.{}", tenths / 10, tenths % 10).parse().unwrap();
                let (stop, stream, user) = rest;
                Request {
                    turns,
                    tools: tools
                        .into_iter()
                        .map(|(name, description, strict)| Tool {
                            path: Path::default(),
                            name,
                            description,
                            parameters: None,
                            strict,
                        })
                        .collect(),
                    tool_choice,
                    reasoning: reasoning.map(|(effort, budget_tokens, show)| Reasoning {
                        show_is_default: false,
                        effort,
                        budget_tokens,
                        show,
                    }),
                    sampling: Sampling {
                        temperature: sampling.0.map(tenths),
                        top_p: sampling.1.map(tenths),
                        top_k: sampling.2,
                        ..Sampling::default()
                    },
                    output_tokens_max,
                    stop,
                    stream,
                    user,
                    ..Request::default()
                }
            },
        )
}

proptest! {
    #[test]
    fn a_written_answer_reads_back(answer in any_answer()) {
        let written = write_response(&answer, &context());
        prop_assert_eq!(read_response(&written, "maker/m").unwrap(), answer);
    }

    #[test]
    fn a_written_stream_reads_back_for_any_chunking(
        answer in any_answer(),
        sizes in prop::collection::vec(1_usize..60, 1..9),
    ) {
        let stream = write_stream(answer.clone().into_events());
        prop_assert_eq!(grammar::check(&stream), Ok(()));
        let (events, whole) = read_stream(&stream, &sizes);
        prop_assert!(whole && is_grammatical(&events, whole));
        prop_assert_eq!(build_response(events), answer);
    }

    #[test]
    fn events_keep_their_grammar_whatever_the_upstream_sends(stream in any_event_stream()) {
        let (events, whole) = read_stream(&stream, &[]);
        prop_assert!(is_grammatical(&events, whole), "{events:?}");
        if whole {
            prop_assert_eq!(grammar::check(&write_stream(events)), Ok(()));
        }
    }

    #[test]
    fn requests_for_an_upstream_are_valid_in_this_dialect(
        request in any_request(),
        budget in any::<bool>(),
    ) {
        let profile = Profile {
            thinking: Some(if budget { Thinking::Budget } else { Thinking::Adaptive }),
            ..Profile::default()
        };
        let target = Target { upstream_model: "up", public_model: "maker/m", profile: &profile,     output_limit: protocol::OutputLimit::default(), asks_for_usage: true };
        let mut request = request;
        prop_assume!(pair_results(&mut request.turns).is_ok());
        let mut dropped = Dropped::new(Dialect::Chat);
        let written = write_request(&request, &target, &mut dropped);
        prop_assume!(written.is_ok());
        let written = written.unwrap();
        let again = read_request(&written).unwrap();
        prop_assert!(again.unknown.is_empty(), "{:?}", again.unknown);
        // Reading it yields a request with the same meaning, and nothing is dropped.
        let mut dropped = Dropped::new(Dialect::Messages);
        let second = write_request(&again, &target, &mut dropped).unwrap();
        prop_assert_eq!(String::from_utf8(second).unwrap(), String::from_utf8(written).unwrap());
        prop_assert_eq!(dropped.names(), &[] as &[String]);
    }

    #[test]
    fn no_text_like_json_makes_readers_panic(
        text in "[{}\\[\\]:,\"\\\\ 0-9a-z]{0,40}",
        at in 0_usize..400,
        which in 0_usize..3,
    ) {
        let fixtures = [
            include_str!("../../../fixtures/messages/requests/everything.json"),
            include_str!("../../../fixtures/messages/answers/thinking_and_tools.json"),
            include_str!("../../../fixtures/messages/answers/thinking_and_tools.sse"),
        ];
        let mut body = fixtures[which].to_owned();
        let mut at = at * 7 % body.len();
        while !body.is_char_boundary(at) {
            at -= 1;
        }
        body.insert_str(at, &text);
        let _ = read_request(body.as_bytes());
        let _ = read_response(body.as_bytes(), "maker/m");
        let (events, whole) = read_stream(&body, &[]);
        prop_assert!(is_grammatical(&events, whole));
    }
}
