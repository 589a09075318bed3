//! Tests of the native paths of Generate Content and Interactions: refusals, changes, and the ends of
//! streams.

use bytes::Bytes;
use protocol::native::{
    AnswerSummary, Head, Identity, Rewriter, UnusableAnswer, read_head, read_named_head,
    rewrite_answer, write_request,
};
use protocol::{ByteQueue, Code, Dialect, Failure, Family, Usage};

fn named(body: &str) -> Result<Head, Failure> {
    read_named_head(&Bytes::copy_from_slice(body.as_bytes()), "maker/m", true)
}

fn interaction(body: &str) -> Result<Head, Failure> {
    read_head(
        Dialect::Interactions,
        &Bytes::copy_from_slice(body.as_bytes()),
    )
}

fn sent(dialect: Dialect, body: &str) -> String {
    let bytes = Bytes::copy_from_slice(body.as_bytes());
    let head = match dialect {
        Dialect::Generate => named(body).unwrap(),
        _ => read_head(dialect, &bytes).unwrap(),
    };
    let sent = write_request(&bytes, &head, "up");
    String::from_utf8(sent.to_vec()).unwrap()
}

fn identity() -> Identity {
    Identity {
        id: "ours_1".into(),
        model: "maker/m".into(),
        created: 1_794_867_059,
    }
}

const CONTENTS: &str = r#""contents":[{"parts":[{"text":"Hi"}]}]"#;

#[test]
fn a_generate_request_is_read_in_both_spellings() {
    for config in [
        r#""generationConfig":{"maxOutputTokens":64.0,"candidateCount":2}"#,
        r#""generation_config":{"max_output_tokens":64,"candidate_count":2}"#,
    ] {
        let head = named(&format!("{{{CONTENTS},{config}}}")).unwrap();
        assert_eq!((head.model.as_str(), head.stream), ("maker/m", true));
        assert_eq!(head.output_tokens_max, Some(64));
        assert_eq!(head.choices, 2);
        assert!(head.input.tokens > 3);
    }
}

#[test]
fn generate_refusals() {
    for (members, code, param) in [
        ("", Code::InvalidRequest, "contents"),
        (r#""contents":[]"#, Code::InvalidRequest, "contents"),
        (r#""contents":null"#, Code::InvalidRequest, "contents"),
        (r#""contents":"Hi""#, Code::InvalidRequest, "contents"),
        (
            r#""contents":[1],"Contents":[1]"#,
            Code::InvalidRequest,
            "Contents",
        ),
        (
            r#""contents":[1],"generationConfig":{},"generation_config":{}"#,
            Code::InvalidRequest,
            "generation_config",
        ),
        (
            r#""contents":[1],"generationConfig":{"maxOutputTokens":"64"}"#,
            Code::InvalidRequest,
            "generationConfig.maxOutputTokens",
        ),
        (
            r#""contents":[1],"provider":{}"#,
            Code::RoutingNotSupported,
            "provider",
        ),
        (
            r#""contents":[1],"generationConfig":{"routingConfig":{"manualMode":{"modelName":"m"}}}"#,
            Code::RoutingNotSupported,
            "generationConfig.routingConfig",
        ),
        (
            r#""contents":[1],"generation_config":{"model_config":{}}"#,
            Code::RoutingNotSupported,
            "generationConfig.modelConfig",
        ),
        (
            r#""contents":[1],"serviceTier":"flex""#,
            Code::ServiceTierNotSupported,
            "service_tier",
        ),
        (
            r#""contents":[1],"generationOutputConfig":{"x":1}"#,
            Code::StatefulNotSupported,
            "generation_output_config",
        ),
        (
            r#""contents":[1],"model":"maker/other""#,
            Code::InvalidRequest,
            "model",
        ),
    ] {
        let failure = named(&format!("{{{members}}}")).expect_err(members);
        assert_eq!(failure.code, code, "{members}");
        assert_eq!(failure.param.as_deref(), Some(param), "{members}");
    }
    let empty = named(r#"{"contents":[]}"#).unwrap_err();
    let body = String::from_utf8(empty.write(Family::Google, "req_1")).unwrap();
    assert!(
        body.contains("invalid_request") && body.contains("INVALID_ARGUMENT"),
        "{body}"
    );
}

#[test]
fn the_alias_of_the_smallest_image_and_our_model_name_are_replaced() {
    for (members, expected) in [
        ("", ""),
        (
            r#","generationConfig":{"imageConfig":{"imageSize":"512"}}"#,
            r#","generationConfig":{"imageConfig":{"imageSize":"0.5K"}}"#,
        ),
        (
            r#","generation_config":{"image_config":{"image_size": 512 }}"#,
            r#","generation_config":{"image_config":{"image_size": "0.5K" }}"#,
        ),
        (
            r#","generationConfig":{"imageConfig":{"imageSize":"2K"}}"#,
            r#","generationConfig":{"imageConfig":{"imageSize":"2K"}}"#,
        ),
        (r#","model":"models/maker/m""#, r#","model":null"#),
        (
            r#","store":true,"cachedContent":"c""#,
            r#","store":true,"cachedContent":"c""#,
        ),
    ] {
        let body = format!("{{{CONTENTS}{members}}}");
        let expected = format!("{{{CONTENTS}{expected}}}");
        assert_eq!(sent(Dialect::Generate, &body), expected);
    }
}

#[test]
fn an_interaction_is_read_and_nothing_is_kept() {
    let body = r#"{"model":"maker/m","input":"Hi","stream":true,"generation_config":{"max_output_tokens":64}}"#;
    let head = interaction(body).unwrap();
    assert_eq!((head.model.as_str(), head.stream), ("maker/m", true));
    assert_eq!(head.output_tokens_max, Some(64));
    for (body, expected) in [
        (
            r#"{"model":"maker/m","input":"Hi"}"#,
            r#"{"store":false,"model":"up","input":"Hi"}"#,
        ),
        (
            r#"{"model":"maker/m","input":"Hi","store":null}"#,
            r#"{"model":"up","input":"Hi","store":false}"#,
        ),
        (
            r#"{"model":"maker/m","input":"Hi","store":false}"#,
            r#"{"model":"up","input":"Hi","store":false}"#,
        ),
    ] {
        assert_eq!(sent(Dialect::Interactions, body), expected);
    }
}

#[test]
fn a_system_instruction_is_sent_as_a_string() {
    for (prompt, expected) in [
        (r#""B\u0065 \/ brief.""#, r#""B\u0065 \/ brief.""#),
        ("null", "null"),
        (r#"{"text":"Be \"brief\"."}"#, r#""Be \"brief\".""#),
        (
            r#"{"role":"system","parts":[{"text":"One."},{"type":"text","text":"Two."}]}"#,
            r#""One.\nTwo.""#,
        ),
        (r#"["One.",{"content":"Two."},""]"#, r#""One.\nTwo.""#),
        ("[]", r#""""#),
        (
            r#"[{"content":[{"type":"text","text":"One.","annotations":null,"signature":""}]}]"#,
            r#""One.""#,
        ),
    ] {
        let body = |model: &str, prompt: &str| {
            format!(
                r#"{{"model":"{model}","store":false,"system_instruction": {prompt},"input":"Hi"}}"#
            )
        };
        let sent = sent(Dialect::Interactions, &body("maker/m", prompt));
        assert_eq!(sent, body("up", expected));
    }
}

#[test]
fn nothing_of_a_system_instruction_is_left_out_silently() {
    for prompt in [
        r#"{"type":"image","data":"AAAA"}"#,
        r#"[{"parts":[{"text":"a","id":"call_gw1_x"}]}]"#,
        r#"[[[[["a"]]]]]"#,
    ] {
        let body = format!(r#"{{"model":"maker/m","input":"Hi","system_instruction":{prompt}}}"#);
        let failure = interaction(&body).expect_err(prompt);
        assert_eq!(failure.code, Code::InvalidRequest, "{prompt}");
        assert_eq!(failure.param.as_deref(), Some("system_instruction"));
    }
    let most = r#"{"model":"maker/m","input":"Hi","system_instruction":[[[["a"]]]]}"#;
    assert!(interaction(most).is_ok());
}

#[test]
fn interactions_refusals() {
    use Code::{ModelNotSupported, RoutingNotSupported, ServiceTierNotSupported};
    for (members, code, param) in [
        (r#""input":"Hi""#, Code::InvalidRequest, "model"),
        (r#""model":"maker/m""#, Code::InvalidRequest, "input"),
        (
            r#""model":"maker/m","input":"""#,
            Code::InvalidRequest,
            "input",
        ),
        (
            r#""model":"maker/m","input":[]"#,
            Code::InvalidRequest,
            "input",
        ),
        (
            r#""model":"maker/m","input":{}"#,
            Code::InvalidRequest,
            "input",
        ),
        (
            r#""model":"maker/m","input":1"#,
            Code::InvalidRequest,
            "input",
        ),
        (
            r#""model":"maker/m","input":"Hi","system_instruction":1"#,
            Code::InvalidRequest,
            "system_instruction",
        ),
    ] {
        let failure = interaction(&format!("{{{members}}}")).expect_err(members);
        assert_eq!(failure.code, code, "{members}");
        assert_eq!(failure.param.as_deref(), Some(param), "{members}");
    }
    for (members, code, param) in [
        (r#""store":true"#, Code::StatefulNotSupported, "store"),
        (
            r#""background":true"#,
            Code::StatefulNotSupported,
            "background",
        ),
        (
            r#""previous_interaction_id":"int_0""#,
            Code::StatefulNotSupported,
            "previous_interaction_id",
        ),
        (r#""agent":"a""#, Code::StatefulNotSupported, "agent"),
        (
            r#""environment":{}"#,
            Code::StatefulNotSupported,
            "environment",
        ),
        (
            r#""webhook_config":{}"#,
            Code::StatefulNotSupported,
            "webhook_config",
        ),
        (r#""route":"x""#, RoutingNotSupported, "route"),
        (
            r#""service_tier":"deferred""#,
            ServiceTierNotSupported,
            "service_tier",
        ),
        (
            r#""background":true,"response_format":[{"type":"video"}]"#,
            ModelNotSupported,
            "model",
        ),
        (
            r#""response_format":{"type":"video"}"#,
            ModelNotSupported,
            "model",
        ),
        (
            r#""generation_config":{"video_config":{"task":"edit"}}"#,
            ModelNotSupported,
            "model",
        ),
    ] {
        let body = format!(r#"{{"model":"maker/m","input":"Hi",{members}}}"#);
        let failure = interaction(&body).expect_err(members);
        assert_eq!(failure.code, code, "{members}");
        assert_eq!(failure.param.as_deref(), Some(param), "{members}");
    }
    let nulls = r#"{"model":"maker/m","input":"Hi","store":null,"background":false,"agent":null,"response_format":{"type":"text","schema":{"type":"video"}}}"#;
    assert!(interaction(nulls).is_ok());
}

#[test]
fn whole_answers_get_our_identity_and_their_usage_is_read() {
    let generate = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":2,"toolUsePromptTokenCount":1,"totalTokenCount":17,"promptTokensDetails":[{"modality":"IMAGE","tokenCount":3}]},"modelVersion":"up-2026","responseId":"r1"}"#;
    let interaction = r#"{"id":"v1_x","object":"interaction","model":"up-2026","status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"Hi"}]}],"usage":{"total_input_tokens":9,"total_cached_tokens":4,"total_output_tokens":5,"total_thought_tokens":2,"total_tool_use_tokens":1,"total_tokens":17,"input_tokens_by_modality":[{"modality":"image","tokens":3}]}}"#;
    let usage = Usage {
        input: 3,
        cached_input: 4,
        image_input: 3,
        output: 7,
        reasoning: 2,
        ..Usage::default()
    };
    for (dialect, body) in [
        (Dialect::Generate, generate),
        (Dialect::Interactions, interaction),
    ] {
        let answer = rewrite_answer(dialect, Bytes::from(body), &identity()).unwrap();
        assert_eq!(answer.usage, Some(usage), "{dialect}");
        assert_eq!(answer.output_tokens_counted, 0);
        let without_usage = Bytes::from(body.replace("\"usage", "\"used"));
        let without_usage = rewrite_answer(dialect, without_usage, &identity()).unwrap();
        assert!(without_usage.output_tokens_counted >= 1);
        let ours = body
            .replace("up-2026", "maker/m")
            .replace("\"r1\"", "\"ours_1\"")
            .replace("v1_x", "ours_1");
        assert_eq!(answer.pieces.into_bytes(), ours);
    }
}

#[test]
fn bodies_that_are_not_answers_are_errors() {
    for (dialect, body) in [
        (Dialect::Generate, "{}"),
        (Dialect::Generate, r#"{"modelVersion":"x"}"#),
        (
            Dialect::Generate,
            r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#,
        ),
        (Dialect::Interactions, "{}"),
        (Dialect::Interactions, r#"{"error":{"code":"api_error"}}"#),
        (Dialect::Interactions, r#"{"status":"failed","steps":[]}"#),
    ] {
        assert!(
            rewrite_answer(dialect, Bytes::from(body), &identity()).is_err(),
            "{body}"
        );
    }
    let blocked =
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3}}"#;
    let answer = rewrite_answer(Dialect::Generate, Bytes::from(blocked), &identity()).unwrap();
    assert_eq!(answer.usage.map(|usage| usage.input), Some(3));
}

fn relay(
    dialect: Dialect,
    stream: &str,
    size: usize,
) -> (String, AnswerSummary, Result<(), UnusableAnswer>) {
    let mut rewriter = Rewriter::new(dialect, identity(), true);
    let mut out = ByteQueue::new();
    let mut result = Ok(());
    for chunk in stream.as_bytes().chunks(size) {
        result = result.and_then(|()| rewriter.push(Bytes::copy_from_slice(chunk), &mut out));
    }
    let result = result.and_then(|()| rewriter.end(&mut out));
    let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
    (text, rewriter.summary().clone(), result)
}

const CHUNK: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Hi\"}]},\"index\":0}],\"modelVersion\":\"up-2026\",\"responseId\":\"r1\"}\r\n\r\n";
const LAST: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":5},\"modelVersion\":\"up-2026\",\"responseId\":\"r1\"}\r\n\r\n";

#[test]
fn a_generate_stream_ends_by_closing_once_it_has_said_something() {
    for (stream, ends) in [
        (format!("{CHUNK}{LAST}"), true),
        (CHUNK.to_owned(), true),
        (LAST.to_owned(), true),
        (
            "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n".to_owned(),
            true,
        ),
        (String::new(), false),
        (
            "data: {\"usageMetadata\":{\"promptTokenCount\":9}}\n\n".to_owned(),
            false,
        ),
        (format!("{CHUNK}data: {{\"candi"), false),
        (
            format!("{CHUNK}data: {{\"error\":{{\"code\":503}}}}\n\n"),
            false,
        ),
    ] {
        for size in [1, 7, 4096] {
            let (text, summary, result) = relay(Dialect::Generate, &stream, size);
            assert_eq!(result.is_ok(), ends, "{stream}");
            assert_eq!(summary.content, stream.contains("Hi"));
            assert!(
                !text.contains("up-2026") && !text.contains("\"r1\""),
                "{text}"
            );
            if stream.contains("STOP") {
                assert_eq!(summary.usage.map(|usage| usage.total()), Some(14));
            }
        }
    }
}

#[test]
fn usage_before_the_finish_is_at_least_what_was_counted() {
    let interim = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"one two three four five six\"}]}}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":1}}\n\n";
    let (_, summary, _) = relay(Dialect::Generate, interim, 4096);
    assert_eq!(summary.usage, None);
    let counted = summary.counted(1_000);
    assert_eq!(
        (counted.input, counted.output),
        (9, summary.output_tokens_counted)
    );
    let (_, summary, _) = relay(Dialect::Generate, &format!("{interim}{LAST}"), 4096);
    assert_eq!(summary.usage.map(|usage| usage.output), Some(5));
}

#[test]
fn generate_streams_have_only_data_lines() {
    let stream = format!(
        ": ping\n\nevent: message\n{CHUNK}data:{{\"candidates\":[],\"responseId\":\"r\",\"modelVersion\":\"up\"}}\n\n\n\n"
    );
    let (text, _, result) = relay(Dialect::Generate, &stream, 4096);
    assert!(result.is_ok());
    let frames: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(frames.len(), 3, "{text}");
    assert!(frames[0].starts_with("data: {\"candidates\":[{") && !frames[0].contains('\n'));
    let second = r#"data: {"candidates":[],"responseId":"ours_1","modelVersion":"maker/m"}"#;
    assert_eq!(frames[1..], [second, ""]);
}

const EVENTS: &str = "event: interaction.created\ndata: {\"event_type\":\"interaction.created\",\"interaction\":{\"id\":\"\",\"object\":\"interaction\",\"model\":\"up-2026\",\"status\":\"in_progress\"}}\n\n\
event: interaction.status_update\ndata: {\"event_type\":\"interaction.status_update\",\"interaction_id\":\"v1_x\",\"status\":\"in_progress\"}\n\n\
event: step.start\ndata: {\"event_type\":\"step.start\",\"index\":0,\"step\":{\"type\":\"model_output\"}}\n\n\
event: step.delta\ndata: {\"event_type\":\"step.delta\",\"index\":0,\"delta\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n";
const COMPLETED: &str = "event: interaction.completed\ndata: {\"event_type\":\"interaction.completed\",\"interaction\":{\"id\":\"v1_x\",\"model\":\"up-2026\",\"status\":\"completed\",\"usage\":{\"total_input_tokens\":9,\"total_output_tokens\":5}}}\n\n";
const DONE: &str = "event: done\ndata: [DONE]\n\n";

#[test]
fn an_interactions_stream_ends_with_its_completed_event() {
    for (stream, ends) in [
        (format!("{EVENTS}{COMPLETED}{DONE}"), true),
        (format!("{EVENTS}{COMPLETED}"), true),
        (
            format!("{EVENTS}{COMPLETED}event: done\ndata: [DONE]"),
            true,
        ),
        (EVENTS.to_owned(), false),
        (
            format!(
                "{EVENTS}event: error\ndata: {{\"event_type\":\"error\",\"error\":{{\"code\":\"api_error\"}}}}\n\n"
            ),
            false,
        ),
        (EVENTS.replace("in_progress", "failed"), false),
    ] {
        for size in [1, 7, 4096] {
            let (text, summary, result) = relay(Dialect::Interactions, &stream, size);
            assert_eq!(result.is_ok(), ends, "{stream}");
            assert!(
                !text.contains("up-2026") && !text.contains("v1_x"),
                "{text}"
            );
            if ends {
                assert_eq!(summary.usage.map(|usage| usage.total()), Some(14));
                assert!(summary.content);
                assert_eq!(text.matches("ours_1").count(), 3);
            }
            assert_eq!(text.ends_with(DONE), stream.contains("[DONE]"));
        }
    }
}

#[test]
fn the_usage_of_a_step_is_not_that_of_the_interaction() {
    let events = EVENTS.replace("\"Hi\"", "\"one two three four five six\"");
    let with_type = "data: {\"event_type\":\"step.stop\",\"index\":0,\"usage\":{\"total_input_tokens\":9,\"total_output_tokens\":1}}\n\n";
    let with_name = with_type.replace("\"event_type\":\"step.stop\",", "");
    let with_name = format!("event: step.stop\n{with_name}");
    let silent = COMPLETED.replace("\"usage\"", "\"used\"");
    for stop in [with_type, &with_name] {
        // A stream that breaks off, and one that ends without usage.
        for end in ["", &silent] {
            let stream = format!("{events}{stop}{end}");
            let (_, summary, _) = relay(Dialect::Interactions, &stream, 4096);
            assert_eq!(summary.usage, None, "{stream}");
            let counted = summary.counted(1_000);
            assert!(counted.output > 1);
            assert_eq!(
                (counted.input, counted.output),
                (9, summary.output_tokens_counted),
                "{stream}"
            );
        }
        let stream = format!("{events}{stop}{COMPLETED}{DONE}");
        let (_, summary, _) = relay(Dialect::Interactions, &stream, 4096);
        assert_eq!(summary.usage.map(|usage| usage.total()), Some(14));
    }
}
