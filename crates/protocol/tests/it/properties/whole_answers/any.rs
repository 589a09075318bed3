//! Generates random whole answers of a dialect, with all members that they may have.

use proptest::prelude::*;
use protocol::Dialect;
use serde_json::{Map, Value, json};

pub(super) fn answer() -> impl Strategy<Value = (Dialect, Value)> {
    prop::sample::select(Dialect::ALL.to_vec()).prop_flat_map(|dialect| {
        let answer = match dialect {
            Dialect::Chat => chat(),
            Dialect::Responses => responses(),
            Dialect::Messages => messages(),
            Dialect::Generate => generate(),
            Dialect::Interactions => interactions(),
        };
        answer.prop_map(move |answer| (dialect, answer))
    })
}

/// Replaces the value at a place that the seed decides, mostly by one of another type.
pub(super) fn corrupt(value: &mut Value, seed: u64) {
    let pick = |count: usize| usize::try_from(seed % 97).unwrap() % count.max(1);
    match value {
        Value::Object(members) if !members.is_empty() && !seed.is_multiple_of(5) => {
            let at = pick(members.len());
            let inside = members.values_mut().nth(at).unwrap();
            corrupt(inside, seed / 5);
        }
        Value::Array(items) if !items.is_empty() && !seed.is_multiple_of(5) => {
            let at = pick(items.len());
            corrupt(&mut items[at], seed / 5);
        }
        _ => {
            let others = [
                json!(null),
                json!(7),
                json!("x"),
                json!([1]),
                json!({"a": 1}),
            ];
            *value = others[pick(others.len())].clone();
        }
    }
}

type Any = BoxedStrategy<Value>;

fn text() -> Any {
    let text = prop_oneof![
        Just(String::new()),
        "[a-z \\\\\"\n]{1,12}",
        Just("line\u{2028}end \u{85}é".to_owned()),
    ];
    text.prop_map(Value::String).boxed()
}

fn word() -> Any {
    "[a-z]{1,8}".prop_map(Value::String).boxed()
}

fn just(value: Value) -> Any {
    Just(value).boxed()
}

fn number() -> Any {
    (1_u64..500).prop_map(Value::from).boxed()
}

/// Members that a vendor may add.
fn extra() -> Any {
    prop_oneof![
        word(),
        number(),
        just(json!({"a": [1, {"b": null}], "c": "\u{2028}"})),
        just(json!([])),
    ]
    .boxed()
}

fn list(item: Any, items_max: usize) -> Any {
    prop::collection::vec(item, 0..=items_max)
        .prop_map(Value::from)
        .boxed()
}

/// An object with these members. The optional ones may be missing or `null`.
fn object(required: Vec<(&'static str, Any)>, optional: Vec<(&'static str, Any)>) -> Any {
    let (names, mut values): (Vec<_>, Vec<_>) = required
        .into_iter()
        .map(|(name, value)| (name, value.prop_map(Some).boxed()))
        .unzip();
    let mut names = names;
    for (name, value) in optional {
        names.push(name);
        let missing = Just(None);
        let null = Just(Some(Value::Null));
        values.push(prop_oneof![2 => missing, 1 => null, 3 => value.prop_map(Some)].boxed());
    }
    values
        .prop_map(move |values| {
            let members = names.iter().zip(values);
            let members = members.filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
            Value::from(members.collect::<Map<_, _>>())
        })
        .boxed()
}

fn chat() -> Any {
    let call = object(
        vec![
            ("id", word()),
            ("type", just(json!("function"))),
            (
                "function",
                object(vec![("name", word()), ("arguments", text())], vec![]),
            ),
        ],
        vec![("extra_content", extra()), ("index", number())],
    );
    let message = object(
        vec![("role", just(json!("assistant")))],
        vec![
            ("content", text()),
            ("refusal", text()),
            ("reasoning_content", text()),
            ("annotations", list(extra(), 2)),
            (
                "audio",
                just(json!({"id": "a", "data": "AAAA", "transcript": "t", "expires_at": 1})),
            ),
            ("tool_calls", list(call, 3)),
            (
                "function_call",
                just(json!({"name": "f", "arguments": "{}"})),
            ),
            ("reasoning_details", extra()),
        ],
    );
    let choice = object(
        vec![("message", message), ("finish_reason", word())],
        vec![
            (
                "logprobs",
                just(json!({"content": [{"token": "a"}], "refusal": null})),
            ),
            ("content_filter_results", extra()),
        ],
    );
    let usage = (1_u64..500, 1_u64..500).prop_map(
        |(input, output)| json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output, "completion_tokens_details": {"reasoning_tokens": 0}}),
    );
    let answer = object(
        vec![
            ("id", word()),
            ("object", just(json!("chat.completion"))),
            ("created", number()),
            ("model", word()),
            ("choices", list(choice, 3)),
        ],
        vec![
            ("usage", usage.boxed()),
            ("service_tier", word()),
            ("system_fingerprint", word()),
            ("citations", list(text(), 2)),
        ],
    );
    numbered(answer, "choices")
}

/// Numbers the items of a list, as all vendors do.
fn numbered(answer: Any, list: &'static str) -> Any {
    answer
        .prop_map(move |mut answer| {
            for (index, item) in answer[list].as_array_mut().unwrap().iter_mut().enumerate() {
                item["index"] = index.into();
            }
            answer
        })
        .boxed()
}

fn typed(
    kind: &'static str,
    required: Vec<(&'static str, Any)>,
    optional: Vec<(&'static str, Any)>,
) -> Any {
    let mut required = required;
    required.push(("type", just(json!(kind))));
    object(required, optional)
}

fn response_message() -> Any {
    let annotation = just(
        json!({"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}),
    );
    let annotations = ("annotations", list(annotation, 2));
    let probable = vec![
        ("text", text()),
        annotations.clone(),
        ("logprobs", list(extra(), 2)),
    ];
    let part = prop_oneof![
        typed("output_text", vec![("text", text()), annotations], vec![]),
        typed("output_text", probable, vec![]),
        typed("refusal", vec![("refusal", text())], vec![]),
        typed("output_image", vec![], vec![("data", extra())]),
    ];
    let members = vec![
        ("id", word()),
        ("role", just(json!("assistant"))),
        ("content", list(part.boxed(), 3)),
        ("status", just(json!("completed"))),
    ];
    typed("message", members, vec![("phase", word())])
}

fn response_item() -> Any {
    let summary = typed("summary_text", vec![("text", text())], vec![]);
    let thought = typed("reasoning_text", vec![("text", text())], vec![]);
    let call = || vec![("id", word()), ("call_id", word()), ("name", word())];
    let with = |mut members: Vec<_>, member| {
        members.push(member);
        members
    };
    let hosted = |kind| {
        let members = vec![("id", word()), ("status", just(json!("completed")))];
        typed(kind, members, vec![("action", extra()), ("result", text())])
    };
    prop_oneof![
        response_message(),
        typed(
            "reasoning",
            vec![("id", word()), ("summary", list(summary, 2))],
            vec![("encrypted_content", text()), ("status", word())],
        ),
        typed(
            "reasoning",
            vec![
                ("id", word()),
                ("summary", just(json!([]))),
                ("content", list(thought, 2)),
            ],
            vec![],
        ),
        typed("function_call", with(call(), ("arguments", text())), vec![]),
        typed("custom_tool_call", with(call(), ("input", text())), vec![]),
        hosted("web_search_call"),
        hosted("image_generation_call"),
        hosted("mcp_call"),
    ]
    .boxed()
}

fn responses() -> Any {
    let usage = (1_u64..500, 1_u64..500).prop_map(
        |(input, output)| json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}),
    );
    object(
        vec![
            ("id", word()),
            ("object", just(json!("response"))),
            ("created_at", number()),
            (
                "status",
                prop_oneof![just(json!("completed")), just(json!("incomplete"))].boxed(),
            ),
            ("model", word()),
            ("output", list(response_item(), 4)),
            ("usage", usage.boxed()),
        ],
        vec![
            (
                "incomplete_details",
                just(json!({"reason": "max_output_tokens"})),
            ),
            ("tools", list(extra(), 2)),
            ("metadata", extra()),
            ("completed_at", number()),
        ],
    )
}

fn messages() -> Any {
    let citation = just(json!({"type": "char_location", "cited_text": "c", "document_index": 0}));
    let text_block = object(
        vec![("type", just(json!("text"))), ("text", text())],
        vec![("citations", list(citation, 2))],
    );
    let thinking = object(
        vec![
            ("type", just(json!("thinking"))),
            ("thinking", text()),
            ("signature", word()),
        ],
        vec![],
    );
    let redacted = object(
        vec![("type", just(json!("redacted_thinking"))), ("data", word())],
        vec![],
    );
    let input = prop_oneof![
        just(json!({})),
        just(json!({"q": "a \"b\"\n", "n": [1, {}]}))
    ];
    let call = object(
        vec![
            (
                "type",
                prop_oneof![just(json!("tool_use")), just(json!("server_tool_use"))].boxed(),
            ),
            ("id", word()),
            (
                "name",
                prop_oneof![word(), just(json!("web_search"))].boxed(),
            ),
            ("input", input.boxed()),
        ],
        vec![("caller", extra())],
    );
    let result = object(
        vec![
            (
                "type",
                prop_oneof![
                    just(json!("web_search_tool_result")),
                    just(json!("code_execution_tool_result")),
                ]
                .boxed(),
            ),
            ("tool_use_id", word()),
            ("content", extra()),
        ],
        vec![],
    );
    let block = prop_oneof![text_block, thinking, redacted, call, result];
    let usage = (1_u64..500, 1_u64..500).prop_map(
        |(input, output)| json!({"input_tokens": input, "output_tokens": output, "cache_read_input_tokens": 3, "server_tool_use": {"web_search_requests": 1}, "service_tier": "standard"}),
    );
    object(
        vec![
            ("id", word()),
            ("type", just(json!("message"))),
            ("role", just(json!("assistant"))),
            ("model", word()),
            ("content", list(block.boxed(), 4)),
            ("stop_reason", word()),
            ("usage", usage.boxed()),
        ],
        vec![
            ("stop_sequence", word()),
            ("container", extra()),
            ("context_management", extra()),
            (
                "stop_details",
                just(json!({"type": "refusal", "category": "bio"})),
            ),
        ],
    )
}

fn generate() -> Any {
    let part = prop_oneof![
        text().prop_map(|text| json!({"text": text})),
        text().prop_map(|text| json!({"text": text, "thought": true})),
        just(json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})),
        just(json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thought": true})),
        just(json!({"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}})),
        just(
            json!({"functionCall": {"name": "f", "args": {"a": "\u{2028}"}}, "thoughtSignature": "U0lH"})
        ),
        just(json!({"executableCode": {"language": "PYTHON", "code": "1"}})),
    ];
    let content = object(
        vec![
            ("parts", list(part.boxed(), 4)),
            ("role", just(json!("model"))),
        ],
        vec![],
    );
    let candidate = object(
        vec![("content", content)],
        vec![
            ("finishReason", just(json!("STOP"))),
            ("safetyRatings", list(extra(), 2)),
            (
                "groundingMetadata",
                just(json!({"webSearchQueries": ["a"]})),
            ),
        ],
    );
    let usage = (1_u64..500, 1_u64..500).prop_map(
        |(input, output)| json!({"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output}),
    );
    let answer = object(
        vec![
            ("candidates", list(candidate, 3)),
            ("usageMetadata", usage.boxed()),
            ("modelVersion", word()),
            ("responseId", word()),
        ],
        vec![("createTime", word())],
    );
    numbered(answer, "candidates")
}

fn interactions() -> Any {
    let annotation =
        just(json!({"type": "url_citation", "url": "u", "start_index": 0, "end_index": 1}));
    let text_part = object(
        vec![("type", just(json!("text"))), ("text", text())],
        vec![],
    );
    let cited = object(
        vec![
            ("type", just(json!("text"))),
            ("text", text()),
            ("annotations", list(annotation, 2)),
        ],
        vec![],
    );
    let picture = just(json!({"type": "image", "mime_type": "image/png", "data": "AAAA"}));
    let sound = just(json!({"type": "audio", "mime_type": "audio/wav", "data": "AAAA"}));
    let output = object(
        vec![
            ("type", just(json!("model_output"))),
            (
                "content",
                list(prop_oneof![text_part, cited, picture, sound].boxed(), 4),
            ),
        ],
        vec![("note", extra())],
    );
    let thought = object(
        vec![("type", just(json!("thought")))],
        vec![
            (
                "summary",
                list(just(json!({"type": "text", "text": "Think"})), 2),
            ),
            ("signature", word()),
        ],
    );
    let arguments = prop_oneof![just(json!({})), just(json!({"q": "a \"b\"\n"}))];
    let call = object(
        vec![
            ("type", just(json!("function_call"))),
            ("id", word()),
            ("name", word()),
            ("arguments", arguments.boxed()),
        ],
        vec![("signature", word())],
    );
    let hosted = object(
        vec![(
            "type",
            prop_oneof![
                just(json!("google_search_call")),
                just(json!("google_search_result")),
            ]
            .boxed(),
        )],
        vec![
            ("arguments", extra()),
            ("result", extra()),
            ("signature", word()),
        ],
    );
    let step = prop_oneof![output, thought, call, hosted];
    let usage = (1_u64..500, 1_u64..500).prop_map(
        |(input, output)| json!({"total_input_tokens": input, "total_output_tokens": output, "total_tokens": input + output}),
    );
    object(
        vec![
            ("id", word()),
            ("object", just(json!("interaction"))),
            ("model", word()),
            (
                "status",
                prop_oneof![just(json!("completed")), just(json!("requires_action"))].boxed(),
            ),
            ("steps", list(step.boxed(), 4)),
            ("usage", usage.boxed()),
        ],
        vec![("created", word()), ("updated", word()), ("role", word())],
    )
}
