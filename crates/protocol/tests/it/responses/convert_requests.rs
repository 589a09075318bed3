//! Tests that convert requests into the common form and back.

use std::fmt::Write as _;

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::{Dropped, Opaque, Part, Path, Request, Role, Target, Thought, ToolCall};
use protocol::convert;
use protocol::native::read_head;
use protocol::responses::{read_request, write_request};
use protocol::{Code, Dialect, Failure, Profile, Thinking};
use serde_json::json;

use super::any::{MODEL, any_request, turn};

fn target(profile: &Profile) -> Target<'_> {
    Target {
        upstream_model: "up",
        public_model: MODEL,
        profile,
        output_limit: protocol::OutputLimit::default(),
        asks_for_usage: true,
    }
}

/// The request for an upstream of this dialect, and the members that are dropped, by their names in
/// this dialect.
fn written(request: &Request, profile: &Profile) -> Result<(String, String), Failure> {
    let mut dropped = Dropped::new(Dialect::Responses);
    let body = write_request(request, &target(profile), &mut dropped)?;
    let body = String::from_utf8(body).unwrap();
    Ok((body, dropped.header().unwrap_or_default()))
}

fn pretty(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn requests_are_read_and_written() {
    for (name, body) in [
        (
            "everything",
            include_str!("../../../fixtures/responses/requests/everything.json"),
        ),
        (
            "encrypted_reasoning",
            include_str!("../../../fixtures/responses/requests/encrypted_reasoning.json"),
        ),
        (
            "builtin_tools",
            include_str!("../../../fixtures/responses/requests/builtin_tools.json"),
        ),
        (
            "tool_loop",
            include_str!("../../../fixtures/responses/requests/tool_loop.json"),
        ),
        (
            "nulls_everywhere",
            include_str!("../../../fixtures/responses/requests/nulls_everywhere.json"),
        ),
        (
            "image_and_instructions",
            include_str!("../../../fixtures/responses/requests/image_and_instructions.json"),
        ),
        (
            "structured_output",
            include_str!("../../../fixtures/responses/requests/structured_output.json"),
        ),
    ] {
        let request = read_request(body.as_bytes()).unwrap();
        let (again, dropped) = written(&request, &Profile::default()).unwrap();
        let shown = format!(
            "{request:#?}\n\n=== written\n{}\n\n=== dropped\n{dropped}",
            pretty(&again)
        );
        insta::assert_snapshot!(name, shown);
    }
}

/// Removes the differences between two forms of the same request.
fn plain(mut request: Request) -> String {
    let mut turns: Vec<protocol::canon::Turn> = Vec::new();
    for mut turn in std::mem::take(&mut request.turns) {
        for (path, part) in &mut turn.parts {
            *path = Path::default();
            match part {
                Part::Thought(thought) => thought
                    .opaque
                    .iter_mut()
                    .for_each(|opaque| opaque.model = "".into()),
                Part::ToolCall(call) => call.signed_at = protocol::canon::SignedAt::default(),
                Part::ToolResult(result) => {
                    let parts = result.parts.iter_mut();
                    parts.for_each(|(path, _)| *path = Path::default());
                }
                _ => {}
            }
        }
        match turns.last_mut() {
            Some(last) if last.role == turn.role => last.parts.append(&mut turn.parts),
            _ if turn.parts.is_empty() => {}
            _ => turns.push(turn),
        }
    }
    request.turns = turns;
    for tool in &mut request.tools {
        tool.path = Path::default();
    }
    request
        .tools
        .iter_mut()
        .for_each(|tool| tool.strict = tool.strict.or(Some(false)));
    request.tool_choice = request
        .tool_choice
        .filter(|choice| *choice != protocol::canon::ToolChoice::Auto);
    request.unknown.clear();
    format!("{request:#?}")
}

#[test]
fn requests_of_real_clients_read_back_after_writing() {
    let captures: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../../../fixtures/responses/captures.json")).unwrap();
    let mut refused = String::new();
    for capture in &captures {
        let body = Bytes::from(capture["body"].to_string());
        let name = format!("{} {}", capture["client"], capture["call"]);
        if let Err(failure) = read_head(Dialect::Responses, &body) {
            writeln!(refused, "{name}: {failure}").unwrap();
            continue;
        }
        let request = read_request(&body).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        let (again, dropped) = written(&request, &Profile::default()).unwrap();
        let unknown = !request.unknown.is_empty();
        assert_eq!(!dropped.is_empty(), unknown, "{name}: {dropped}");
        let again = read_request(again.as_bytes()).unwrap();
        assert_eq!(plain(again), plain(request), "{name}");
    }
    insta::assert_snapshot!(refused);
}

#[test]
fn wrong_requests_are_refused_by_name() {
    for (body, param) in [
        (r#"{"input":[1]}"#, "input[0]"),
        (
            r#"{"input":[{"role":"critic","content":"a"}]}"#,
            "input[0].role",
        ),
        (r#"{"input":[{"content":"a"}]}"#, "input[0].role"),
        (
            r#"{"input":[{"type":"function_call","call_id":"a"}]}"#,
            "input[0].name",
        ),
        (
            r#"{"input":[{"type":"function_call_output","output":"a"}]}"#,
            "input[0].call_id",
        ),
        (
            r#"{"input":[{"type":"function_call_output","call_id":"a","output":"a"}]}"#,
            "input[0]",
        ),
        (
            r#"{"input":"a","max_output_tokens":-1}"#,
            "max_output_tokens",
        ),
        (r#"{"input":"a","temperature":"hot"}"#, "temperature"),
        (
            r#"{"input":"a","tools":[{"type":"function"}]}"#,
            "tools[0].name",
        ),
        (r#"{"input":"a","tool_choice":"any"}"#, "tool_choice"),
        (
            r#"{"input":"a","text":{"format":{"type":"json_schema"}}}"#,
            "text.format.schema",
        ),
    ] {
        let failure = read_request(body.as_bytes()).expect_err(body);
        assert_eq!(failure.code, Code::InvalidRequest, "{body}");
        assert_eq!(failure.param.as_deref(), Some(param), "{body}");
    }
    let reference = r#"{"input":[{"type":"item_reference","id":"rs_1"}]}"#;
    let failure = read_request(reference.as_bytes()).unwrap_err();
    assert_eq!(failure.code, Code::StatefulNotSupported);
}

fn user(part: Part) -> Request {
    Request {
        turns: vec![turn(Role::User, vec![part])],
        ..Request::default()
    }
}

fn hello() -> Request {
    user(Part::Text("Hello".to_owned()))
}

#[test]
fn members_that_the_dialect_does_not_have_are_listed() {
    let mut request = hello();
    request.stop = vec!["x".to_owned()];
    request.choices = Some(2);
    request.sampling.top_k = Some(3);
    request.sampling.seed = Some(0);
    request.sampling.frequency_penalty = Some(1.into());
    request.sampling.presence_penalty = serde_json::Number::from_f64(0.0);
    request.unknown = vec!["odd".to_owned()];
    request.tool_choice = Some(protocol::canon::ToolChoice::Required);
    let mut dropped = Dropped::new(Dialect::Chat);
    let profile = Profile::default();
    write_request(&request, &target(&profile), &mut dropped).unwrap();
    assert_eq!(
        dropped.header().unwrap(),
        "tool_choice,frequency_penalty,top_k,seed,stop,n,odd"
    );
}

#[test]
fn a_models_profile_is_obeyed() {
    let mut request = hello();
    request.sampling.temperature = serde_json::Number::from_f64(0.5);
    request.sampling.top_p = serde_json::Number::from_f64(1.0);
    request.reasoning = Some(protocol::canon::Reasoning {
        show_is_default: false,
        effort: None,
        budget_tokens: Some(9000),
        show: true,
    });
    let (body, dropped) = written(&request, &Profile::default()).unwrap();
    assert_eq!(
        body,
        r#"{"model":"up","store":false,"input":[{"type":"message","role":"user","content":"Hello"}],"temperature":0.5,"top_p":1.0,"reasoning":{"effort":"high","summary":"auto"},"include":["reasoning.encrypted_content"]}"#
    );
    assert_eq!(dropped, "");
    let plain = Profile {
        fixed_sampling: Some(true),
        thinking: Some(Thinking::None),
        reasoning: Some(false),
        ..Profile::default()
    };
    let (body, dropped) = written(&request, &plain).unwrap();
    assert_eq!(
        body,
        r#"{"model":"up","store":false,"input":[{"type":"message","role":"user","content":"Hello"}]}"#
    );
    assert_eq!(dropped, "temperature,reasoning.effort,reasoning.summary");
}

#[test]
fn a_limit_below_the_vendors_least_is_raised_to_it() {
    for (asked, sent) in [(1, 16), (16, 16), (17, 17)] {
        let mut request = hello();
        request.output_tokens_max = Some(asked);
        let (body, dropped) = written(&request, &Profile::default()).unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["max_output_tokens"], sent, "{asked}");
        assert_eq!(dropped, "", "a limit that is moved is not dropped");
    }
}

#[test]
fn reasoning_goes_back_to_its_own_model_alone() {
    let body = |origin, model: &str| {
        let opaque = Opaque {
            origin,
            model: model.into(),
            text: "sealed".into(),
        };
        let thought = Thought {
            text: "Hm.".to_owned(),
            opaque: Some(opaque),
            redacted: false,
        };
        let mut request = hello();
        request
            .turns
            .insert(0, turn(Role::Assistant, vec![Part::Thought(thought)]));
        written(&request, &Profile::default()).unwrap().0
    };
    for (origin, model, sent) in [
        (Dialect::Responses, MODEL, true),
        (Dialect::Responses, "", true),
        (Dialect::Responses, "maker/other", false),
        (Dialect::Messages, MODEL, false),
    ] {
        assert_eq!(
            body(origin, model).contains("sealed"),
            sent,
            "{origin} {model}"
        );
    }
}

#[test]
fn the_signature_of_a_call_is_found_before_it() {
    let signature = Opaque {
        origin: Dialect::Generate,
        model: "g/m".into(),
        text: "sig".into(),
    };
    let body = json!({"input": [
        {"role": "user", "content": "a"},
        {"type": "reasoning", "summary": [], "encrypted_content": signature.wrap()},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "b"},
    ]});
    let request = read_request(body.to_string().as_bytes()).unwrap();
    let [(_, Part::ToolCall(ToolCall { opaque, .. }))] = &request.turns[1].parts[..] else {
        panic!("{request:?}");
    };
    assert_eq!(opaque.as_ref(), Some(&signature));
}

#[test]
fn requests_that_cannot_be_sent_are_refused() {
    let profile = Profile::default();
    assert!(written(&user(Part::Foreign), &profile).is_err());
    assert!(written(&Request::default(), &profile).is_err());
    let mut forced = hello();
    forced.tools = vec![protocol::canon::Tool {
        path: Path::default(),
        name: "f".to_owned(),
        description: None,
        parameters: None,
        strict: None,
    }];
    forced.tool_choice = Some(protocol::canon::ToolChoice::Named("g".to_owned()));
    let failure = written(&forced, &profile).unwrap_err();
    assert_eq!(failure.param.as_deref(), Some("tool_choice"));
}

#[test]
fn system_prompts_alone_are_input() {
    let request = Request {
        turns: vec![turn(Role::System, vec![Part::Text("Speak.".to_owned())])],
        ..Request::default()
    };
    let (body, _) = written(&request, &Profile::default()).unwrap();
    assert!(body.contains(r#""input":[{"type":"message","role":"system","content":"Speak."}]"#));
}

#[test]
fn long_call_ids_are_cut_alike_and_stay_apart() {
    let ids = [
        "x".repeat(64),
        "x".repeat(65),
        format!("{}y", "x".repeat(64)),
        "é".repeat(60),
    ];
    let mut seen = Vec::new();
    for id in &ids {
        let call = Part::ToolCall(ToolCall {
            signed_at: protocol::canon::SignedAt::default(),
            id: id.clone(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            opaque: None,
        });
        let result = Part::ToolResult(protocol::canon::ToolResult {
            call_id: id.clone(),
            name: None,
            parts: Vec::new(),
            is_error: false,
        });
        let mut request = hello();
        request.turns.push(turn(Role::Assistant, vec![call]));
        request.turns.push(turn(Role::User, vec![result]));
        let (body, _) = written(&request, &Profile::default()).unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let sent = body["input"][1]["call_id"].as_str().unwrap().to_owned();
        assert_eq!(body["input"][2]["call_id"], sent.as_str());
        assert!(sent.len() <= 64 && !seen.contains(&sent), "{sent}");
        seen.push(sent);
    }
    assert_eq!(seen[0], ids[0]);
}

proptest! {
    #[test]
    fn written_values_read_back(request in any_request()) {
        let (body, dropped) = written(&request, &Profile::default()).unwrap();
        prop_assert_eq!(dropped, "");
        read_head(Dialect::Responses, &Bytes::from(body.clone())).unwrap();
        let again = read_request(body.as_bytes()).unwrap();
        prop_assert_eq!(plain(again), plain(request));
    }

    #[test]
    fn no_body_makes_the_reader_panic(body in any::<Vec<u8>>(), cut in 0..3000_usize) {
        let _ = read_request(&body);
        let everything = include_bytes!("../../../fixtures/responses/requests/everything.json");
        let _ = read_request(&everything[..cut.min(everything.len())]);
    }
}

/// The roles and texts of a request that is converted for a chat upstream, and the dropped members.
fn sent_to_chat(items: &serde_json::Value) -> Result<(String, String), Failure> {
    let body = json!({"model": MODEL, "input": items}).to_string();
    let request = convert::read_request(Dialect::Responses, body.as_bytes(), false)?;
    let mut dropped = Dropped::new(Dialect::Responses);
    let profile = Profile::default();
    let sent = convert::write_request(Dialect::Chat, &request, &target(&profile), &mut dropped)?;
    let sent: serde_json::Value = serde_json::from_slice(&sent).unwrap();
    let messages = sent["messages"].as_array().unwrap().iter();
    let shown = messages.map(|it| {
        let role = it["role"].as_str().unwrap();
        match it["content"].as_str() {
            Some(text) => format!("{role} {text}"),
            None => format!("{role} calls {}", it["tool_calls"][0]["id"]),
        }
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    Ok((shown, dropped.header().unwrap_or_default()))
}

#[test]
fn results_of_other_tools_are_dropped_like_their_calls() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let model = |text: &str| json!({"role": "assistant", "content": text});
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let result = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": id});
    let custom = json!({"type": "custom_tool_call", "call_id": "c", "name": "g", "input": "x"});
    let output = |kind: &str| json!({"type": kind, "call_id": "c", "output": "y"});
    for kind in [
        "custom_tool_call_output",
        "shell_call_output",
        "computer_call_output",
        "mcp_approval_response",
        "tool_search_output",
    ] {
        let items = json!([user("a"), custom, output(kind), user("b")]);
        let (sent, dropped) = sent_to_chat(&items).unwrap();
        assert_eq!(sent, "user a, user b", "{kind}");
        assert_eq!(dropped, "input[2],input[1]", "{kind}");
    }
    let output = output("custom_tool_call_output");
    for (items, expected) in [
        // The answers before and after the result stay separate.
        (
            json!([user("a"), model("b"), custom, output, model("c"), user("d")]),
            "user a, assistant b, assistant c, user d",
        ),
        // Results of functions next to the dropped result stay together.
        (
            json!([
                user("a"),
                call("1"),
                custom,
                call("2"),
                result("1"),
                output,
                result("2")
            ]),
            "user a, assistant calls \"1\", tool 1, tool 2",
        ),
        (
            json!([
                user("a"),
                call("1"),
                custom,
                output,
                result("1"),
                model("b"),
                user("c")
            ]),
            "user a, assistant calls \"1\", tool 1, assistant b, user c",
        ),
        (
            json!([user("a"), call("1"), custom, result("1"), output]),
            "user a, assistant calls \"1\", tool 1",
        ),
    ] {
        let (sent, dropped) = sent_to_chat(&items).unwrap();
        assert_eq!(sent, expected, "{items}");
        assert_eq!(dropped.matches("input[").count(), 2, "{dropped}");
    }
    // The model must continue from the result, so a request without the result is refused.
    for items in [
        json!([user("a"), custom, output]),
        json!([user("a"), custom, custom, output, output]),
    ] {
        let last = items.as_array().unwrap().len() - 1;
        let failure = sent_to_chat(&items).unwrap_err();
        assert_eq!(failure.code, Code::InvalidRequest);
        assert_eq!(failure.param.as_deref(), Some(&*format!("input[{last}]")));
    }
}
