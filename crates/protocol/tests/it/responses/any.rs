//! Generates random requests and answers of the common form that this dialect can express.

use std::sync::Arc;

use proptest::prelude::*;
use protocol::canon::{
    AnswerContext, Block, Document, Effort, Format, Image, ImageDetail, ImageSource, Logprobs,
    Opaque, Part, Path, Reasoning, Request, Response, ResponseBlock, Role, Stop, Thought, Tool,
    ToolCall, ToolChoice, ToolResult, Turn,
};
use protocol::{Dialect, Usage};
use serde_json::value::RawValue;

use crate::cases::without_paths;

pub(super) const MODEL: &str = "maker/m";

pub(super) fn context(request: Request) -> AnswerContext {
    AnswerContext {
        id: "resp_1".into(),
        model: MODEL.into(),
        created: 1_760_000_000,
        input_tokens: 7,
        request: Arc::new(request),
    }
}

fn sealed(text: String) -> Opaque {
    Opaque {
        origin: Dialect::Responses,
        model: MODEL.into(),
        text: text.into(),
    }
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}( [a-z]{1,8}){0,4}",
        any::<String>().prop_filter("empty texts are none", |text| !text.is_empty()),
    ]
}

fn json() -> impl Strategy<Value = String> {
    (words(), any::<i64>())
        .prop_map(|(text, number)| serde_json::json!({"a": text, "n": number}).to_string())
}

/// JSON that is written unchanged. It has no line ends that only some clients recognize, because those
/// are escaped.
fn schema() -> impl Strategy<Value = String> {
    ("[a-z \"\\\\]{0,9}", any::<i64>())
        .prop_map(|(text, number)| serde_json::json!({"a": text, "n": number}).to_string())
}

fn whole_block(kind: Block, text: String) -> ResponseBlock {
    ResponseBlock {
        kind,
        text,
        opaque: None,
        citations: Vec::new(),
        logprobs: Vec::new(),
    }
}

fn any_block() -> impl Strategy<Value = ResponseBlock> {
    let citation = (words(), words(), 0..99_u64, 0..99_u64);
    prop_oneof![
        3 => (words(), prop::collection::vec(citation, 0..3)).prop_map(|(text, citations)| ResponseBlock {
            citations,
            ..whole_block(Block::Text, text)
        }),
        1 => words().prop_map(|text| whole_block(Block::Refusal, text)),
        2 => (words(), prop::option::of(words())).prop_map(|(text, opaque)| ResponseBlock {
            opaque: opaque.map(sealed),
            ..whole_block(Block::Thought, text)
        }),
        1 => words().prop_map(|opaque| ResponseBlock {
            opaque: Some(sealed(opaque)),
            ..whole_block(Block::Thought, String::new())
        }),
        3 => ("call_[a-z0-9]{1,9}", "[a-z_]{1,9}", json()).prop_map(|(id, name, arguments)| {
            whole_block(Block::ToolCall { id, name }, arguments)
        }),
    ]
}

/// An answer that reads back unchanged.
pub(super) fn any_response() -> impl Strategy<Value = Response> {
    let usage = (0..9000_u64, 0..99_u64, 0..99_u64, 0..9000_u64);
    let usage = usage.prop_map(|(input, cached_input, cache_write, output)| Usage {
        input,
        cached_input,
        cache_write,
        output,
        reasoning: output / 2,
        ..Usage::default()
    });
    let stop = prop::option::of(prop_oneof![
        Just(Stop::Length),
        Just(Stop::Filter(None)),
        Just(Stop::Paused),
    ]);
    let blocks = prop::collection::vec(any_block(), 0..6);
    (blocks, prop::option::of(usage), stop).prop_map(|(blocks, usage, stop)| {
        let has = |wanted: fn(&Block) -> bool| blocks.iter().any(|block| wanted(&block.kind));
        let natural = if has(|block| matches!(block, Block::ToolCall { .. })) {
            Stop::ToolCalls
        } else if has(|block| *block == Block::Refusal) {
            Stop::Refusal { category: None }
        } else {
            Stop::End
        };
        Response {
            stop: stop.unwrap_or(natural),
            blocks,
            usage,
        }
    })
}

fn any_image() -> impl Strategy<Value = Part> {
    let source = prop_oneof![
        Just(ImageSource::Url("https://example.com/a.png".to_owned())),
        Just(ImageSource::Inline {
            mime: "image/png".to_owned(),
            data: "iVBORw0KGgo=".to_owned()
        }),
    ];
    let detail = prop::option::of(prop_oneof![
        Just(ImageDetail::Auto),
        Just(ImageDetail::Low),
        Just(ImageDetail::High),
        Just(ImageDetail::Original),
    ]);
    (source, detail).prop_map(|(source, detail)| Part::Image(Image { source, detail }))
}

fn any_said() -> impl Strategy<Value = Part> {
    let document = Document {
        mime: "application/pdf".to_owned(),
        data: "JVBERi0=".to_owned(),
        name: Some("a.pdf".to_owned()),
    };
    prop_oneof![
        3 => words().prop_map(Part::Text),
        1 => any_image(),
        1 => Just(Part::Document(document)),
    ]
}

fn any_thought() -> impl Strategy<Value = Part> {
    (words(), words()).prop_map(|(text, opaque)| {
        Part::Thought(Thought {
            text,
            opaque: Some(sealed(opaque)),
            redacted: false,
        })
    })
}

/// A turn of the assistant, and the results of its tools.
fn any_exchange() -> impl Strategy<Value = Vec<Turn>> {
    let thought = prop::option::of(any_thought());
    let said = prop_oneof![
        words().prop_map(Part::Text),
        words().prop_map(Part::Refusal)
    ];
    let call = (
        "[a-z_]{1,9}",
        json(),
        prop::collection::vec(any_said(), 0..3),
    );
    let calls = prop::collection::vec(call, 0..3);
    (thought, prop::option::of(said), calls).prop_map(|(thought, said, calls)| {
        let mut parts: Vec<Part> = thought.into_iter().chain(said).collect();
        let mut results = Vec::new();
        for (number, (name, arguments, output)) in calls.into_iter().enumerate() {
            let id = format!("call_{number}");
            results.push(Part::ToolResult(ToolResult {
                call_id: id.clone(),
                name: Some(name.clone()),
                parts: without_paths(output),
                is_error: false,
            }));
            parts.push(Part::ToolCall(ToolCall {
                signed_at: protocol::canon::SignedAt::default(),
                id,
                name,
                arguments,
                opaque: None,
            }));
        }
        vec![turn(Role::Assistant, parts), turn(Role::User, results)]
    })
}

pub(super) fn turn(role: Role, parts: Vec<Part>) -> Turn {
    let parts = parts.into_iter().map(|part| (Path::default(), part));
    Turn {
        role,
        parts: parts.collect(),
    }
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap()
}

fn any_tools() -> impl Strategy<Value = (Vec<Tool>, Option<ToolChoice>)> {
    let tool = (
        "[a-z_]{1,9}",
        prop::option::of(words()),
        prop::option::of(schema()),
    );
    let tools = prop::collection::vec((tool, any::<bool>()), 1..4);
    let choice = prop::option::of(0..5_u8);
    (tools, choice).prop_map(|(tools, choice)| {
        let tools: Vec<Tool> = tools
            .into_iter()
            .map(|((name, description, parameters), strict)| Tool {
                path: Path::default(),
                name,
                description,
                parameters: parameters.map(raw),
                strict: Some(strict),
            })
            .collect();
        let first = tools[0].name.clone();
        let choice = choice.map(|choice| match choice {
            0 => ToolChoice::Auto,
            1 => ToolChoice::None,
            2 => ToolChoice::Required,
            3 => ToolChoice::Named(first),
            _ => ToolChoice::Allowed {
                names: vec![first],
                required: true,
            },
        });
        (tools, choice)
    })
}

fn any_format() -> impl Strategy<Value = Format> {
    prop_oneof![
        Just(Format::Json),
        (
            "[a-z]{1,9}",
            prop::option::of(words()),
            schema(),
            prop::option::of(any::<bool>())
        )
            .prop_map(|(name, description, schema, strict)| Format::Schema {
                name: Some(name),
                description,
                schema: raw(schema),
                strict,
            }),
    ]
}

/// A request that reads back unchanged.
pub(super) fn any_request() -> impl Strategy<Value = Request> {
    let system =
        prop::option::of(words().prop_map(|text| turn(Role::System, vec![Part::Text(text)])));
    let user = || prop::collection::vec(any_said(), 1..4).prop_map(|parts| turn(Role::User, parts));
    let late =
        prop::option::of(words().prop_map(|text| turn(Role::Developer, vec![Part::Text(text)])));
    let turns = (system, user(), any_exchange(), late, user()).prop_map(
        |(system, first, exchange, late, last)| {
            let turns = system.into_iter().chain([first]).chain(exchange);
            turns.chain(late).chain([last]).collect::<Vec<_>>()
        },
    );
    let effort = prop_oneof![Just(Effort::None), Just(Effort::Low), Just(Effort::Max)];
    let reasoning = (prop::option::of(effort), any::<bool>());
    let options = (
        any::<bool>(),
        prop::option::of(16..9999_u64),
        prop::option::of(0..20_u32),
        prop::option::of(any_tools()),
        prop::option::of(any_format()),
        reasoning,
        prop::option::of(words()),
    );
    (turns, options).prop_map(
        |(turns, (stream, limit, temperature, tools, format, (effort, show), user))| {
            let (tools, tool_choice) = tools.unwrap_or_default();
            let mut request = Request {
                stream,
                turns,
                tools,
                tool_choice,
                output_tokens_max: limit,
                format,
                user: user.clone(),
                cache_key: user,
                parallel_tool_calls: stream.then_some(false),
                metadata: stream.then(|| raw(r#"{"k":"v"}"#.to_owned())),
                ..Request::default()
            };
            request.sampling.temperature = temperature.map(serde_json::Number::from);
            request.logprobs = temperature.map(|top| Logprobs {
                is_implied: false,
                top: (top > 0).then_some(top),
            });
            let reasoning = Reasoning {
                effort,
                show,
                ..Reasoning::default()
            };
            request.reasoning = (effort.is_some() || show).then_some(reasoning);
            request
        },
    )
}
