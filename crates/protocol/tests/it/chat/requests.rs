//! Tests of chat requests in the common form: which members are kept, reported as dropped, or refused.

use std::fmt::Write as _;

use protocol::canon::{
    Document, Dropped, Effort, Format, Image, ImageSource, Opaque, Part, Path, Reasoning, Request,
    Role, Target, Thought, Tool, ToolCall, ToolChoice, ToolResult, Turn, carrier,
};
use protocol::convert::{read_request, write_request};
use protocol::{Dialect, Failure, Profile, Thinking, chat};
use serde_json::{Value, json};

use crate::cases::{fixtures, without_paths};

/// The request for the upstream, and the members that were dropped.
fn write(request: &Request, profile: &Profile) -> Result<(Value, Vec<String>), Failure> {
    let target = Target {
        upstream_model: "up-2026",
        public_model: "maker/m",
        profile,
        output_limit: protocol::OutputLimit::default(),
        asks_for_usage: true,
    };
    let mut dropped = Dropped::new(Dialect::Generate);
    let body = chat::write_request(request, &target, &mut dropped)?;
    let body = serde_json::from_slice(&body).unwrap();
    Ok((body, dropped.names().to_vec()))
}

fn read(body: &Value) -> Result<Request, Failure> {
    let body = body.to_string();
    protocol::native::read_head(Dialect::Chat, &body.clone().into())?;
    read_request(Dialect::Chat, body.as_bytes(), false)
}

#[test]
fn a_stream_is_asked_for_its_usage_where_that_is_possible() {
    let request =
        read(&json!({ "model": "maker/m", "messages": [{ "role": "user", "content": "Hi" }] }));
    let request = Request {
        stream: true,
        ..request.unwrap()
    };
    for (asks_for_usage, expected) in [
        (true, json!({ "include_usage": true })),
        (false, Value::Null),
    ] {
        let target = Target {
            upstream_model: "up-2026",
            public_model: "maker/m",
            profile: &Profile::default(),
            output_limit: protocol::OutputLimit::default(),
            asks_for_usage,
        };
        let body =
            chat::write_request(&request, &target, &mut Dropped::new(Dialect::Chat)).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&body["stream"], &body["stream_options"]),
            (&json!(true), &expected)
        );
    }
}

#[test]
fn requests_go_through_the_common_form() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/chat/requests");
    for case in ["everything", "nulls", "older_functions", "foreign_calls"] {
        let body = std::fs::read(format!("{folder}/{case}.json")).unwrap();
        let head = protocol::native::read_head(Dialect::Chat, &body.clone().into()).unwrap();
        let request = read_request(Dialect::Chat, &body, head.stream).unwrap();
        let (out, dropped) = write(&request, &Profile::default()).unwrap();
        let shown = format!(
            "dropped: {}\n{}",
            dropped.join(" "),
            serde_json::to_string_pretty(&out).unwrap()
        );
        insta::with_settings!({ snapshot_suffix => case }, {
            insta::assert_snapshot!(shown);
        });
        // The written request reads back as the same request, except for dropped members.
        let again = chat::read_request(out.to_string().as_bytes()).unwrap();
        assert_eq!(
            write(&again, &Profile::default()).unwrap(),
            (out, Vec::new())
        );
    }
}

#[test]
fn requests_of_real_clients_convert() {
    let mut shown = String::new();
    for (name, body) in fixtures("chat/captures") {
        let head = protocol::native::read_head(Dialect::Chat, &body.clone().into()).unwrap();
        let request = read_request(Dialect::Chat, &body, head.stream).unwrap();
        for to in Dialect::ALL {
            let profile = Profile::default();
            let target = Target {
                upstream_model: "up-2026",
                public_model: &head.model,
                profile: &profile,
                output_limit: protocol::OutputLimit::default(),
                asks_for_usage: true,
            };
            let mut dropped = Dropped::new(Dialect::Chat);
            let sent = write_request(to, &request, &target, &mut dropped).unwrap();
            assert!(
                serde_json::from_slice::<Value>(&sent).is_ok(),
                "{name} to {to}"
            );
            if let Some(header) = dropped.header() {
                let _ = writeln!(shown, "{name} to {to}: {header}");
            }
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn invalid_requests_are_refused_by_name() {
    for (mut body, param) in [
        (json!({"messages": [{"content": "x"}]}), "messages[0].role"),
        (json!({"messages": [{"role": "robot"}]}), "messages[0].role"),
        (json!({"messages": [1]}), "messages[]"),
        (
            json!({"messages": [{"role": "user", "content": 1}]}),
            "messages[].content",
        ),
        (
            json!({"messages": [{"role": "tool", "content": "x"}]}),
            "messages[0].tool_call_id",
        ),
        (
            json!({"messages": [{"role": "tool", "tool_call_id": "1"}]}),
            "messages[0]",
        ),
        (json!({"messages": [{"role": "function"}]}), "messages[0]"),
        (
            json!({"tools": [{"type": "function"}]}),
            "tools[0].function",
        ),
        (json!({"tools": [{"function": {}}]}), "tools[0]"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"max_tokens": -1}), "max_tokens"),
        (json!({"seed": "x"}), "seed"),
        (json!({"stop": 1}), "stop"),
    ] {
        body["model"] = "maker/m".into();
        if body.get("messages").is_none() {
            body["messages"] = json!([{"role": "user", "content": "x"}]);
        }
        let failure = read(&body).unwrap_err();
        assert_eq!(failure.param.as_deref(), Some(param), "{failure}");
        assert_eq!(failure.status(), 400);
    }
}

fn opaque(origin: Dialect, model: &str, text: &str) -> Opaque {
    Opaque {
        origin,
        model: model.into(),
        text: text.into(),
    }
}

#[test]
fn thoughts_in_an_id_come_back_before_their_call() {
    let thought = |text: &str, value| Thought {
        text: text.to_owned(),
        opaque: Some(opaque(Dialect::Messages, "maker/m", value)),
        redacted: false,
    };
    let signature = opaque(Dialect::Generate, "maker/m", "sig");
    let first = carrier::encode(
        "call_1",
        &carrier::IdPayload {
            thoughts: vec![thought("a", "A"), thought("b", "B")],
            opaque: Some(signature.clone()),
        },
    );
    let second = carrier::encode(
        "call_2",
        &carrier::IdPayload {
            thoughts: vec![thought("c", "C")],
            opaque: None,
        },
    );
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let request = read(&json!({"model": "maker/m", "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "Well.", "reasoning_content": "abc",
         "tool_calls": [call(&first), call(&second)]},
        {"role": "tool", "tool_call_id": first, "content": "1"},
        {"role": "tool", "tool_call_id": second, "content": "2"},
    ]}))
    .unwrap();
    let said: Vec<_> = request.turns[1]
        .parts
        .iter()
        .map(|(_, part)| part)
        .collect();
    let [
        Part::Thought(a),
        Part::Thought(b),
        Part::Text(text),
        Part::ToolCall(one),
        Part::Thought(c),
        Part::ToolCall(two),
    ] = said[..]
    else {
        panic!("{said:?}");
    };
    assert_eq!(
        (a, b, c),
        (&thought("a", "A"), &thought("b", "B"), &thought("c", "C"))
    );
    assert_eq!(text, "Well.");
    assert_eq!((one.id.as_str(), two.id.as_str()), ("call_1", "call_2"));
    assert_eq!((&one.opaque, &two.opaque), (&Some(signature), &None));
    let answers: Vec<_> = request.turns[2]
        .parts
        .iter()
        .map(|(_, part)| part)
        .collect();
    assert!(matches!(
        answers[..],
        [Part::ToolResult(one), Part::ToolResult(two)]
            if one.call_id == "call_1" && two.call_id == "call_2" && one.name.as_deref() == Some("f")
    ));
    // The client did not send these members in these places, so they are dropped without a report.
    let (_, dropped) = write(&request, &Profile::default()).unwrap();
    assert!(dropped.is_empty(), "{dropped:?}");
}

#[test]
fn signatures_are_read_from_the_extension_for_them() {
    let ours = opaque(Dialect::Generate, "maker/m", "sig");
    for (text, expected) in [
        (ours.wrap(), ours.clone()),
        ("cmF3".to_owned(), opaque(Dialect::Chat, "", "cmF3")),
    ] {
        let request = read(&json!({"model": "maker/m", "messages": [
            {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"},
             "extra_content": {"google": {"thought_signature": text}}}]},
            {"role": "tool", "tool_call_id": "1", "content": "x"},
        ]}))
        .unwrap();
        let (_, Part::ToolCall(call)) = &request.turns[0].parts[0] else {
            panic!("{:?}", request.turns);
        };
        assert_eq!(call.opaque, Some(expected));
        assert_eq!(call.arguments, "{}");
    }
}

fn turn(role: Role, parts: Vec<Part>) -> Turn {
    let path = Path::item("contents", 0);
    let parts = parts.into_iter().enumerate();
    Turn {
        role,
        parts: parts
            .map(|(at, part)| (path.inner("parts", at), part))
            .collect(),
    }
}

fn asks(parts: Vec<Part>) -> Request {
    Request {
        turns: vec![turn(Role::User, parts)],
        ..Request::default()
    }
}

#[test]
fn pictures_in_results_follow_as_the_users() {
    let picture = Part::Image(Image {
        source: ImageSource::Inline {
            mime: "image/png".to_owned(),
            data: "AAAA".to_owned(),
        },
        detail: None,
    });
    let result = |id: &str, parts| {
        Part::ToolResult(ToolResult {
            call_id: id.to_owned(),
            name: None,
            parts: without_paths(parts),
            is_error: true,
        })
    };
    let text = |text: &str| Part::Text(text.to_owned());
    let request = asks(vec![
        result("1", vec![text("see"), picture]),
        result("2", vec![]),
        text("And?"),
    ]);
    let (body, dropped) = write(&request, &Profile::default()).unwrap();
    assert_eq!(
        body["messages"],
        json!([
            {"role": "tool", "tool_call_id": "1", "content": [
                {"type": "text", "text": "see"}, {"type": "text", "text": "[image]"}]},
            {"role": "tool", "tool_call_id": "2", "content": ""},
            {"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "text", "text": "And?"}]},
        ])
    );
    assert!(dropped.is_empty());
}

/// Upstreams refuse the data of a file without a name, and clients of other dialects send no name.
#[test]
fn a_file_without_a_name_gets_one() {
    for (name, expected) in [(None, "document.pdf"), (Some("a.pdf"), "a.pdf")] {
        let file = Part::Document(Document {
            mime: "application/pdf".to_owned(),
            data: "AAAA".to_owned(),
            name: name.map(str::to_owned),
        });
        let (body, _) = write(&asks(vec![file]), &Profile::default()).unwrap();
        assert_eq!(
            body["messages"][0]["content"][0]["file"],
            json!({"filename": expected, "file_data": "data:application/pdf;base64,AAAA"})
        );
    }
}

#[test]
fn a_turn_of_which_nothing_is_left_is_refused() {
    let failure = write(&asks(vec![Part::Foreign]), &Profile::default()).unwrap_err();
    assert_eq!(failure.param.as_deref(), Some("contents[0].parts[0]"));
    let text = Part::Text("x".to_owned());
    let (_, dropped) = write(&asks(vec![Part::Foreign, text]), &Profile::default()).unwrap();
    assert_eq!(dropped, ["contents[0].parts[0]"]);
}

fn tool(name: &str) -> Tool {
    Tool {
        path: Path::default(),
        name: name.to_owned(),
        description: None,
        parameters: None,
        strict: None,
    }
}

#[test]
fn a_choice_of_tools_needs_tools() {
    let named = |name: &str| ToolChoice::Named(name.to_owned());
    let mut request = asks(vec![Part::Text("x".to_owned())]);
    request.parallel_tool_calls = Some(false);
    for (choice, dropped) in [
        (ToolChoice::Auto, &[][..]),
        (ToolChoice::None, &[]),
        (ToolChoice::Required, &["toolConfig.functionCallingConfig"]),
        (named("f"), &["toolConfig.functionCallingConfig"]),
    ] {
        request.tool_choice = Some(choice);
        let (body, header) = write(&request, &Profile::default()).unwrap();
        assert_eq!(header, dropped);
        assert!(body.get("tool_choice").is_none() && body.get("parallel_tool_calls").is_none());
    }
    request.tools = vec![tool("f"), tool("g")];
    for (choice, expected) in [
        (ToolChoice::Auto, json!("auto")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
        (
            named("g"),
            json!({"type": "function", "function": {"name": "g"}}),
        ),
    ] {
        request.tool_choice = Some(choice);
        let (body, _) = write(&request, &Profile::default()).unwrap();
        assert_eq!(body["tool_choice"], expected);
        assert_eq!(body["parallel_tool_calls"], false);
    }
    request.tool_choice = Some(named("h"));
    let failure = write(&request, &Profile::default()).unwrap_err();
    assert_eq!(
        failure.param.as_deref(),
        Some("toolConfig.functionCallingConfig")
    );
}

#[test]
fn the_profile_decides_on_sampling_and_reasoning() {
    let number = |text: &str| Some(text.parse().unwrap());
    let fixed = Profile {
        fixed_sampling: Some(true),
        ..Profile::default()
    };
    let mut request = asks(vec![Part::Text("x".to_owned())]);
    request.sampling.temperature = number("0.5");
    request.sampling.top_p = number("1.0");
    let (body, dropped) = write(&request, &fixed).unwrap();
    assert_eq!(dropped, ["generationConfig.temperature"]);
    assert!(body.get("temperature").is_none() && body.get("top_p").is_none());

    let thoughtless = Profile {
        reasoning: Some(false),
        ..Profile::default()
    };
    let unthinking = Profile {
        thinking: Some(Thinking::None),
        ..Profile::default()
    };
    let few = Profile {
        efforts: Some(vec![Effort::Low, Effort::High]),
        ..Profile::default()
    };
    let any = Profile::default();
    let think = "generationConfig.thinkingConfig.thinkingLevel";
    let budget_name = "generationConfig.thinkingConfig.thinkingBudget";
    let show = "generationConfig.thinkingConfig.includeThoughts";
    for (profile, effort, budget, shown, expected, expected_dropped) in [
        (
            &any,
            Some(Effort::Medium),
            None,
            false,
            json!("medium"),
            &[][..],
        ),
        (&any, None, Some(8192), true, json!("medium"), &[show]),
        (&few, Some(Effort::Medium), None, false, json!("low"), &[]),
        (
            &thoughtless,
            Some(Effort::None),
            None,
            false,
            Value::Null,
            &[],
        ),
        (
            &thoughtless,
            Some(Effort::Low),
            None,
            false,
            Value::Null,
            &[think],
        ),
        (
            &unthinking,
            None,
            Some(1),
            false,
            Value::Null,
            &[budget_name],
        ),
        (&any, None, None, true, Value::Null, &[show]),
    ] {
        let mut request = asks(vec![Part::Text("x".to_owned())]);
        request.reasoning = Some(Reasoning {
            show_is_default: false,
            effort,
            budget_tokens: budget,
            show: shown,
        });
        let (body, dropped) = write(&request, profile).unwrap();
        assert_eq!(body["reasoning_effort"], expected);
        assert_eq!(dropped, expected_dropped);
    }
}

#[test]
fn members_that_chat_does_not_have_are_listed() {
    let mut request = asks(vec![Part::Text("x".to_owned())]);
    request.stop = (0..5).map(|number| number.to_string()).collect();
    request.format = Some(Format::Schema {
        name: None,
        description: None,
        schema: serde_json::value::RawValue::from_string("{\"type\":\n\"object\"}".to_owned())
            .unwrap(),
        strict: None,
    });
    request.sampling.top_k = Some(3);
    request.choices = Some(3);
    request.unknown = vec!["safetySettings".to_owned()];
    request.turns.push(turn(
        Role::Assistant,
        vec![
            Part::Thought(Thought::default()),
            Part::ToolCall(ToolCall {
                signed_at: protocol::canon::SignedAt::default(),
                id: "1".to_owned(),
                name: "f".to_owned(),
                arguments: "{".to_owned(),
                opaque: Some(opaque(Dialect::Chat, "maker/m", "sig")),
            }),
            Part::ToolCall(ToolCall {
                signed_at: protocol::canon::SignedAt::default(),
                id: "2".to_owned(),
                name: "f".to_owned(),
                arguments: "{}".to_owned(),
                opaque: Some(opaque(Dialect::Generate, "maker/m", "sig")),
            }),
        ],
    ));
    let (body, dropped) = write(&request, &Profile::default()).unwrap();
    assert_eq!(
        dropped,
        [
            "safetySettings",
            "contents[0].parts[0]",
            "generationConfig.topK",
            "generationConfig.stopSequences",
            "generationConfig.candidateCount",
        ]
    );
    assert_eq!(body["stop"], json!(["0", "1", "2", "3"]));
    assert_eq!(
        body["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "response", "schema": {"type": "object"}}})
    );
    // A signature is sent only to the model that made it, on a channel of the dialect that it came
    // from.
    let calls = &body["messages"][1]["tool_calls"];
    assert_eq!(
        calls[0]["extra_content"]["google"]["thought_signature"],
        "sig"
    );
    assert_eq!(calls[0]["function"]["arguments"], "{");
    assert!(calls[1].get("extra_content").is_none());
}
