//! Tests that convert Messages requests into the common form and back.

use std::fmt::Write;

use protocol::canon::{Dropped, Reasoning, Request, Sampling, Target, pair_results};
use protocol::messages::{self, write_request};
use protocol::{Dialect, Failure, Profile, Thinking};

/// Reads a request as the convert path does.
pub(super) fn read_request(body: &[u8]) -> Result<Request, Failure> {
    let mut request = messages::read_request(body)?;
    pair_results(&mut request.turns)?;
    Ok(request)
}

/// The request in the common form, without members that are not set.
fn shown(request: &Request) -> String {
    let mut out = String::new();
    for turn in &request.turns {
        for (path, part) in &turn.parts {
            writeln!(out, "{:?} {path} {part:?}", turn.role).unwrap();
        }
    }
    for tool in &request.tools {
        writeln!(out, "{tool:?}").unwrap();
    }
    let mut say = |name: &str, said: Option<String>| {
        if let Some(said) = said {
            writeln!(out, "{name}: {said}").unwrap();
        }
    };
    say(
        "tool choice",
        request.tool_choice.as_ref().map(|it| format!("{it:?}")),
    );
    say(
        "parallel",
        request.parallel_tool_calls.map(|it| it.to_string()),
    );
    say("limit", request.output_tokens_max.map(|it| it.to_string()));
    let sampled = request.sampling != Sampling::default();
    say(
        "sampling",
        sampled.then(|| format!("{:?}", request.sampling)),
    );
    say(
        "stop",
        (!request.stop.is_empty()).then(|| format!("{:?}", request.stop)),
    );
    say(
        "format",
        request.format.as_ref().map(|it| format!("{it:?}")),
    );
    say(
        "reasoning",
        request.reasoning.as_ref().map(|it| format!("{it:?}")),
    );
    say("user", request.user.clone());
    say("stream", request.stream.then(|| "true".to_owned()));
    say(
        "unknown",
        (!request.unknown.is_empty()).then(|| request.unknown.join(" ")),
    );
    out
}

/// The request for an upstream of this dialect, and the members that are reported as dropped.
pub(super) fn written(request: &Request, profile: &Profile) -> String {
    let mut dropped = Dropped::new(Dialect::Messages);
    let target = Target {
        upstream_model: "up",
        public_model: "maker/m",
        profile,
        output_limit: protocol::OutputLimit::default(),
        asks_for_usage: true,
    };
    let body = match write_request(request, &target, &mut dropped) {
        Ok(body) => body,
        Err(failure) => return format!("{failure} {:?}", failure.param),
    };
    let mut lines = String::new();
    // The body is shown as it was written, so that the order of its members is compared too.
    let text = String::from_utf8(body).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    lines.push_str(&text);
    if let Some(header) = dropped.header() {
        write!(lines, "\ndropped: {header}").unwrap();
    }
    lines
}

#[test]
fn requests_are_read_and_written_again() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/messages/requests");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 10);
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let request = read_request(&std::fs::read(&file).unwrap()).unwrap();
        let text = format!(
            "{}\n---\n{}",
            shown(&request),
            written(&request, &Profile::default())
        );
        insta::assert_snapshot!(name, text);
    }
}

fn read(members: &str) -> Request {
    let body = format!(
        r#"{{"model":"maker/m","max_tokens":64,"messages":[{{"role":"user","content":"Hi"}}]{members}}}"#
    );
    read_request(body.as_bytes()).unwrap()
}

#[test]
fn thinking_is_read_in_every_form() {
    use protocol::canon::Effort::{High, None as Off};
    let reasoning = |effort, budget_tokens, show| {
        Some(Reasoning {
            show_is_default: false,
            effort,
            budget_tokens,
            show,
        })
    };
    for (members, expected) in [
        ("", None),
        (r#","thinking":null,"output_config":{"effort":null}"#, None),
        (
            r#","thinking":{"type":"disabled"}"#,
            reasoning(Some(Off), None, false),
        ),
        (
            r#","thinking":{"type":"between_tools"}"#,
            reasoning(Some(Off), None, false),
        ),
        (
            r#","thinking":{"type":"enabled","budget_tokens":2048}"#,
            reasoning(None, Some(2048), true),
        ),
        (
            r#","thinking":{"type":"enabled","budget_tokens":2048,"display":"omitted"}"#,
            reasoning(None, Some(2048), false),
        ),
        (
            r#","thinking":{"type":"adaptive"}"#,
            reasoning(None, None, true),
        ),
        (
            r#","thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}"#,
            reasoning(Some(High), None, true),
        ),
        (
            r#","output_config":{"effort":"high"}"#,
            reasoning(Some(High), None, false),
        ),
    ] {
        let found = read(members).reasoning.map(|reasoning| Reasoning {
            show_is_default: false,
            ..reasoning
        });
        assert_eq!(found, expected, "{members}");
    }
}

#[test]
fn known_members_must_have_the_right_type() {
    for (body, param) in [
        (r#"{"messages":[1]}"#, "messages[0]"),
        (r#"{"messages":[{"content":"x"}]}"#, "messages.role"),
        (
            r#"{"messages":[{"role":"tool","content":"x"}]}"#,
            "messages.role",
        ),
        (r#"{"messages":[{"role":"user"}]}"#, "messages.content"),
        (
            r#"{"messages":[{"role":"user","content":1}]}"#,
            "messages.content",
        ),
        (
            r#"{"messages":[{"role":"user","content":[1]}]}"#,
            "messages.content",
        ),
        (
            r#"{"messages":[{"role":"user","content":[{}]}]}"#,
            "messages.content",
        ),
        (
            r#"{"messages":[{"role":"user","content":[{"type":"text"}]}]}"#,
            "messages.content.text",
        ),
        (
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":[]}]}]}"#,
            "messages.content.input",
        ),
        (
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}"#,
            "messages[0].content[0]",
        ),
        (r#"{"system":1}"#, "system"),
        (r#"{"tools":[{"input_schema":{}}]}"#, "tools.name"),
        (
            r#"{"tools":[{"name":"f","input_schema":[]}]}"#,
            "tools.input_schema",
        ),
        (r#"{"tool_choice":"auto"}"#, "tool_choice"),
        (r#"{"tool_choice":{"type":"some"}}"#, "tool_choice.type"),
        (r#"{"tool_choice":{"type":"tool"}}"#, "tool_choice.name"),
        (r#"{"thinking":true}"#, "thinking"),
        (r#"{"thinking":{"type":"much"}}"#, "thinking.type"),
        (
            r#"{"thinking":{"type":"enabled"}}"#,
            "thinking.budget_tokens",
        ),
        (
            r#"{"output_config":{"effort":"minimal"}}"#,
            "output_config.effort",
        ),
        (
            r#"{"output_config":{"format":{"type":"json_object"}}}"#,
            "output_config.format",
        ),
        (r#"{"stop_sequences":"END"}"#, "stop_sequences"),
        (r#"{"metadata":{"user_id":1}}"#, "metadata.user_id"),
    ] {
        let failure = read_request(body.as_bytes()).expect_err(body);
        assert_eq!(failure.param.as_deref(), Some(param), "{body}");
        assert_eq!(failure.status(), 400);
    }
}

fn profile(thinking: Thinking) -> Profile {
    Profile {
        thinking: Some(thinking),
        max_output_tokens: Some(64_000),
        ..Profile::default()
    }
}

#[test]
fn the_profile_decides_how_thinking_is_configured() {
    let mut table = String::new();
    for members in [
        r#","thinking":{"type":"disabled"}"#,
        r#","output_config":{"effort":"low"}"#,
        r#","thinking":{"type":"enabled","budget_tokens":9000}"#,
        r#","thinking":{"type":"enabled","budget_tokens":200}"#,
        r#","thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"max"}"#,
        r#","thinking":{"type":"adaptive"}"#,
        r#","output_config":{"effort":"high"},"tools":[{"name":"f"}],"tool_choice":{"type":"any"}"#,
        r#","output_config":{"effort":"high"},"temperature":0.2,"top_p":0.97,"top_k":3"#,
    ] {
        writeln!(table, "{members}").unwrap();
        let mut request = read(members);
        let adaptive = profile(Thinking::Adaptive);
        let always = Profile {
            efforts: serde_json::from_str(r#"["low","high"]"#).unwrap(),
            ..adaptive.clone()
        };
        let budget = profile(Thinking::Budget);
        let never = profile(Thinking::None);
        for (name, profile) in [
            ("adaptive", adaptive),
            ("always", always),
            ("budget", budget),
            ("none", never),
        ] {
            for limit in [None, Some(4096), Some(1000)] {
                request.output_tokens_max = limit;
                let written = written(&request, &profile);
                let rest = written.replace(
                    r#""messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]"#,
                    "..",
                );
                writeln!(table, "  {name} {limit:?}: {rest}").unwrap();
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn fixed_sampling_is_dropped_and_listed() {
    let profile = Profile {
        fixed_sampling: Some(true),
        ..Profile::default()
    };
    let plain = read(r#","temperature":1.0,"top_p":1"#);
    assert!(!written(&plain, &profile).contains("dropped"));
    let hot = read(r#","temperature":0.5,"top_p":0.5,"top_k":5"#);
    let written = written(&hot, &profile);
    assert!(
        written.ends_with("dropped: temperature,top_p,top_k"),
        "{written}"
    );
    assert!(!written.contains("\"top_k\""));
}
