//! Tests of requests for Generate Content and Interactions upstreams, and of the members that are dropped.

use protocol::canon::{
    Dropped, Effort, Format, Image, ImageDetail, ImageSource, Logprobs, Opaque, Part, Path,
    Reasoning, Request, Role, Sampling, Target, Thought, Tool, ToolCall, ToolChoice, ToolResult,
    Turn,
};
use protocol::convert::write_request;
use protocol::{Dialect, Failure, Profile, Thinking};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cases::without_paths;

fn sent(
    dialect: Dialect,
    request: &Request,
    profile: &Profile,
) -> Result<(Value, String), Failure> {
    let target = Target {
        upstream_model: "up",
        public_model: "maker/m",
        profile,
        output_limit: protocol::OutputLimit::default(),
        asks_for_usage: true,
    };
    let mut dropped = Dropped::new(Dialect::Chat);
    let body = write_request(dialect, request, &target, &mut dropped)?;
    let body = serde_json::from_slice(&body).unwrap();
    Ok((body, dropped.header().unwrap_or_default()))
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn turn(role: Role, parts: Vec<Part>) -> Turn {
    let path = Path::item("messages", 0);
    Turn {
        role,
        parts: parts.into_iter().map(|part| (path, part)).collect(),
    }
}

fn asking(turns: Vec<Turn>) -> Request {
    Request {
        turns,
        ..Request::default()
    }
}

fn hello() -> Request {
    asking(vec![turn(Role::User, vec![text("Hi")])])
}

/// Every member of the common form that a chat client can set.
fn everything() -> Request {
    Request {
        stream: true,
        include_usage: true,
        tools: vec![Tool {
            path: Path::default(),
            name: "f".to_owned(),
            description: Some("d".to_owned()),
            parameters: Some(raw(r#"{"$schema":"x","type":"object","a\"b":1}"#)),
            strict: Some(true),
        }],
        tool_choice: Some(ToolChoice::Required),
        parallel_tool_calls: Some(false),
        sampling: Sampling {
            temperature: "0.5".parse().ok(),
            top_p: "0.9".parse().ok(),
            top_k: Some(3),
            frequency_penalty: "0.1".parse().ok(),
            presence_penalty: "0.2".parse().ok(),
            seed: Some(-1),
        },
        stop: ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec(),
        output_tokens_max: Some(100),
        choices: Some(2),
        logprobs: Some(Logprobs {
            is_implied: false,
            top: Some(2),
        }),
        format: Some(Format::Schema {
            name: Some("n".to_owned()),
            description: None,
            schema: raw(r#"{"type":"object"}"#),
            strict: Some(true),
        }),
        reasoning: Some(Reasoning {
            show_is_default: false,
            effort: Some(Effort::Medium),
            budget_tokens: None,
            show: true,
        }),
        verbosity: Some("low".to_owned()),
        user: Some("u".to_owned()),
        safety_identifier: Some("s".to_owned()),
        metadata: Some(raw("{}")),
        cache_key: Some("k".to_owned()),
        unknown: vec!["logit_bias".to_owned()],
        ..hello()
    }
}

#[test]
fn each_member_is_carried_or_listed() {
    let profile = Profile::default();
    for dialect in [Dialect::Generate, Dialect::Interactions] {
        let (body, dropped) = sent(dialect, &everything(), &profile).unwrap();
        let text = format!("dropped: {dropped}\n{body:#}");
        insta::assert_snapshot!(format!("everything_{dialect}"), text);
    }
}

#[test]
fn a_penalty_of_zero_is_left_out_without_a_report() {
    let profile = Profile::default();
    for dialect in [Dialect::Generate, Dialect::Interactions] {
        for zero in ["0", "0.0", "-0.0"] {
            let request = Request {
                sampling: Sampling {
                    frequency_penalty: zero.parse().ok(),
                    presence_penalty: zero.parse().ok(),
                    ..Sampling::default()
                },
                ..hello()
            };
            let (body, dropped) = sent(dialect, &request, &profile).unwrap();
            assert_eq!(dropped, "");
            assert!(!body.to_string().contains("enalty"), "{body}");
        }
    }
}

#[test]
fn models_with_fixed_sampling_are_sent_none() {
    let profile = Profile {
        fixed_sampling: Some(true),
        ..Profile::default()
    };
    for (dialect, listed) in [
        (Dialect::Generate, "temperature,top_p,top_k"),
        (Dialect::Interactions, "top_k,temperature,top_p"),
    ] {
        let request = Request {
            sampling: Sampling {
                temperature: "0.5".parse().ok(),
                top_p: "0.9".parse().ok(),
                top_k: Some(3),
                ..Sampling::default()
            },
            ..hello()
        };
        let (body, dropped) = sent(dialect, &request, &profile).unwrap();
        assert_eq!(dropped, listed);
        assert!(body.get("generationConfig").is_none());
        assert!(body.get("generation_config").is_none());
    }
}

#[test]
fn thinking_is_configured_in_the_way_of_the_model() {
    use Effort::{High, Low, Max, Medium, Minimal, None as Off};
    let level = |level: &str| json!({ "thinkingLevel": level });
    let budget = |budget: u64| json!({ "thinkingBudget": budget });
    let effort = |effort| Reasoning {
        effort: Some(effort),
        ..Reasoning::default()
    };
    let tokens = |tokens| Reasoning {
        budget_tokens: Some(tokens),
        ..Reasoning::default()
    };
    let shown = |effort| Reasoning {
        show: true,
        effort: Some(effort),
        ..Reasoning::default()
    };
    let by = |thinking| Profile {
        thinking: Some(thinking),
        ..Profile::default()
    };
    let minimal = Profile {
        efforts: Some(vec![Minimal, High]),
        ..by(Thinking::Level)
    };
    let unknown = Profile::default();
    for (profile, reasoning, config, simple, listed) in [
        (&by(Thinking::Level), effort(Off), level("LOW"), "low", ""),
        (
            &by(Thinking::Level),
            effort(Medium),
            level("MEDIUM"),
            "medium",
            "",
        ),
        (&by(Thinking::Level), effort(Max), level("HIGH"), "high", ""),
        (
            &by(Thinking::Level),
            tokens(8192),
            level("MEDIUM"),
            "medium",
            "",
        ),
        (&minimal, effort(Off), level("MINIMAL"), "minimal", ""),
        (&minimal, effort(Medium), level("MINIMAL"), "minimal", ""),
        (&by(Thinking::Budget), effort(Low), budget(1024), "low", ""),
        (
            &by(Thinking::Budget),
            effort(Max),
            budget(24_576),
            "high",
            "",
        ),
        (&by(Thinking::Budget), tokens(77), budget(77), "low", ""),
        (&by(Thinking::Budget), tokens(0), budget(0), "low", ""),
        (
            &by(Thinking::Budget),
            tokens(24_577),
            budget(24_576),
            "high",
            "",
        ),
        (&unknown, tokens(77), budget(77), "low", ""),
        (&unknown, effort(High), level("HIGH"), "high", ""),
        (
            &by(Thinking::None),
            effort(High),
            Value::Null,
            "",
            "reasoning_effort",
        ),
        (&by(Thinking::None), effort(Off), Value::Null, "", ""),
        (
            &by(Thinking::Level),
            shown(Low),
            json!({ "thinkingLevel": "LOW", "includeThoughts": true }),
            "low",
            "",
        ),
        (&by(Thinking::Level), shown(Off), level("LOW"), "low", ""),
    ] {
        let request = Request {
            reasoning: Some(reasoning),
            ..hello()
        };
        let (body, dropped) = sent(Dialect::Generate, &request, profile).unwrap();
        assert_eq!(body["generationConfig"]["thinkingConfig"], config);
        assert_eq!(dropped, listed);
        let (body, dropped) = sent(Dialect::Interactions, &request, profile).unwrap();
        let written = &body["generation_config"]["thinking_level"];
        assert_eq!(written.as_str().unwrap_or_default(), simple);
        assert_eq!(dropped, listed);
    }
}

#[test]
fn conversations_begin_with_the_user_and_have_one() {
    let profile = Profile::default();
    let model_first = asking(vec![
        turn(Role::Assistant, vec![text("I begin.")]),
        turn(Role::User, vec![text("Go on")]),
    ]);
    let (body, _) = sent(Dialect::Generate, &model_first, &profile).unwrap();
    assert_eq!(
        body["contents"][0],
        json!({"role": "user", "parts": [{"text": "."}]})
    );
    assert_eq!(body["contents"][1]["role"], "model");
    let (body, _) = sent(Dialect::Interactions, &model_first, &profile).unwrap();
    assert_eq!(body["input"][0]["type"], "model_output");

    let prompts = asking(vec![
        turn(Role::System, vec![text("Be brief.")]),
        turn(Role::Developer, vec![text("Say hello.")]),
    ]);
    let (body, _) = sent(Dialect::Generate, &prompts, &profile).unwrap();
    assert_eq!(body["contents"][0]["parts"][0]["text"], "Say hello.");
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
    let (body, _) = sent(Dialect::Interactions, &prompts, &profile).unwrap();
    assert_eq!(body["input"][0]["content"][0]["text"], "Say hello.");
    assert_eq!(body["system_instruction"], "Be brief.");
}

#[test]
fn drops_that_would_change_the_meaning_are_refused() {
    let profile = Profile::default();
    let forced = Request {
        tool_choice: Some(ToolChoice::Named("g".to_owned())),
        ..everything()
    };
    let foreign = asking(vec![turn(Role::User, vec![Part::Foreign])]);
    for dialect in [Dialect::Generate, Dialect::Interactions] {
        for (request, param) in [(&forced, "tool_choice"), (&foreign, "messages[0]")] {
            let failure = sent(dialect, request, &profile).unwrap_err();
            assert_eq!(failure.status(), 400);
            assert_eq!(failure.param.as_deref(), Some(param));
        }
    }
}

fn called(id: &str, opaque: Option<Opaque>) -> Part {
    Part::ToolCall(ToolCall {
        signed_at: protocol::canon::SignedAt::default(),
        id: id.to_owned(),
        name: "f".to_owned(),
        arguments: "{\"x\":".to_owned(),
        opaque,
    })
}

fn answered(id: &str, parts: Vec<Part>) -> Part {
    Part::ToolResult(ToolResult {
        call_id: id.to_owned(),
        name: Some("f".to_owned()),
        parts: without_paths(parts),
        is_error: false,
    })
}

fn picture(detail: Option<ImageDetail>) -> Part {
    Part::Image(Image {
        source: ImageSource::Inline {
            mime: "image/png".to_owned(),
            data: "iVBO".to_owned(),
        },
        detail,
    })
}

#[test]
fn pictures_of_tools_are_where_the_model_accepts_them() {
    let request = asking(vec![
        turn(Role::User, vec![text("Go")]),
        turn(Role::Assistant, vec![called("a", None)]),
        turn(
            Role::User,
            vec![
                answered("a", vec![text("see"), picture(None)]),
                text("And?"),
            ],
        ),
    ]);
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "iVBO"}});
    for (thinking, inside) in [(Thinking::Level, true), (Thinking::Budget, false)] {
        let profile = Profile {
            thinking: Some(thinking),
            ..Profile::default()
        };
        let (body, _) = sent(Dialect::Generate, &request, &profile).unwrap();
        let parts = body["contents"][2]["parts"].as_array().unwrap();
        let within = &parts[0]["functionResponse"]["parts"][0];
        assert_eq!(within == &inline, inside);
        assert_eq!(parts.last() == Some(&inline), !inside);
        let args = &body["contents"][1]["parts"][0]["functionCall"]["args"];
        assert_eq!(args, &json!({"_raw": "{\"x\":"}));
        let signature = body["contents"][1]["parts"][0].get("thoughtSignature");
        assert_eq!(signature.is_some(), inside);
    }
}

#[test]
fn one_resolution_holds_for_all_pictures() {
    use ImageDetail::{Auto, High, Low, Original};
    let profile = Profile::default();
    for (details, level, listed) in [
        (vec![None, Some(Auto)], None, ""),
        (vec![Some(Low), None], Some("MEDIA_RESOLUTION_LOW"), ""),
        (
            vec![Some(High), Some(Original)],
            Some("MEDIA_RESOLUTION_HIGH"),
            "",
        ),
        (
            vec![Some(High), Some(Low)],
            None,
            "messages[0].image_url.detail",
        ),
    ] {
        let pictures = details.into_iter().map(picture).collect();
        let request = asking(vec![turn(Role::User, pictures)]);
        let (body, dropped) = sent(Dialect::Generate, &request, &profile).unwrap();
        let written = body["generationConfig"]["mediaResolution"].as_str();
        assert_eq!(written, level);
        assert_eq!(dropped, listed);
    }
}

/// In other dialects thoughts carry signatures. In Generate Content a signature belongs to the part
/// after the thought.
#[test]
fn a_signature_on_a_thought_moves_to_the_next_call() {
    let opaque = |text: &str, model: &str| Opaque {
        origin: Dialect::Generate,
        model: model.into(),
        text: text.into(),
    };
    let thought = |opaque| {
        Part::Thought(Thought {
            text: "hm".to_owned(),
            opaque: Some(opaque),
            redacted: false,
        })
    };
    let bypass = json!("skip_thought_signature_validator");
    let profile = Profile::default();
    for (parts, signatures) in [
        (
            vec![
                thought(opaque("S1", "maker/m")),
                text("t"),
                called("a", None),
            ],
            vec![Value::Null, json!("S1")],
        ),
        (
            vec![called("a", None), called("b", None)],
            vec![bypass.clone(), Value::Null],
        ),
        (
            vec![
                thought(opaque("S1", "maker/m")),
                called("a", None),
                thought(opaque("S2", "maker/m")),
                called("b", None),
            ],
            vec![json!("S1"), json!("S2")],
        ),
        (
            vec![
                thought(opaque("S1", "maker/x")),
                called("a", Some(opaque("S2", "maker/x"))),
            ],
            vec![bypass.clone()],
        ),
        (vec![called("a", Some(opaque("S1", "")))], vec![json!("S1")]),
        (
            vec![thought(opaque("S1", "maker/m")), text("t")],
            vec![json!("S1")],
        ),
        (
            vec![text("t"), thought(opaque("S1", "maker/m"))],
            vec![Value::Null, json!("S1")],
        ),
    ] {
        let results = parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(answered(&call.id, Vec::new())),
            _ => None,
        });
        let results = turn(Role::User, results.chain([text("so?")]).collect());
        let request = asking(vec![
            turn(Role::User, vec![text("Go")]),
            turn(Role::Assistant, parts),
            results,
        ]);
        let (body, dropped) = sent(Dialect::Generate, &request, &profile).unwrap();
        let is_lost = |part: &(Path, Part)| match &part.1 {
            Part::Thought(thought) => thought.opaque.as_ref().unwrap().model.as_ref() != "maker/m",
            _ => false,
        };
        let lost = request.turns[1].parts.iter().any(is_lost);
        assert_eq!(dropped, if lost { "messages[0]" } else { "" });
        let parts = body["contents"][1]["parts"].as_array().unwrap();
        let found: Vec<Value> = parts
            .iter()
            .map(|part| part.get("thoughtSignature").cloned().unwrap_or_default())
            .collect();
        assert_eq!(found, signatures, "{body:#}");
    }
}
