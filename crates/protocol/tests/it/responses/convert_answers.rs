//! Tests that convert whole answers into the common form and back.

use proptest::prelude::*;
use protocol::canon::{Block, Opaque, Request, Response, ResponseBlock, Stop};
use protocol::native::UnusableAnswer;
use protocol::responses::{read_request, read_response, write_response};
use protocol::{Code, Dialect};

use super::any::{MODEL, any_response, context};

const ANSWER: &str = include_str!("../../../fixtures/responses/answers/everything.json");

fn pretty(json: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(json).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn an_answer_is_read() {
    insta::assert_debug_snapshot!(read_response(ANSWER.as_bytes(), MODEL).unwrap());
}

#[test]
fn an_answer_is_written_with_what_clients_parse() {
    let request = include_str!("../../../fixtures/responses/requests/everything.json");
    let request = read_request(request.as_bytes()).unwrap();
    let response = read_response(ANSWER.as_bytes(), MODEL).unwrap();
    insta::assert_snapshot!(pretty(&write_response(&response, &context(request))));
}

#[test]
fn an_empty_answer_has_every_member_too() {
    let response = Response {
        blocks: Vec::new(),
        stop: Stop::End,
        usage: None,
    };
    insta::assert_snapshot!(pretty(&write_response(
        &response,
        &context(Request::default())
    )));
}

fn text(text: &str) -> ResponseBlock {
    ResponseBlock {
        kind: Block::Text,
        text: text.to_owned(),
        opaque: None,
        citations: Vec::new(),
        logprobs: Vec::new(),
    }
}

#[test]
fn stop_reasons_are_read() {
    for (stop, said, status, reason) in [
        (Stop::End, "a", "completed", None),
        (Stop::Sequence(Some("x".to_owned())), "a", "completed", None),
        (Stop::ToolCalls, "a", "completed", None),
        (Stop::Length, "a", "incomplete", Some("max_output_tokens")),
        (
            Stop::ContextFull,
            "a",
            "incomplete",
            Some("max_output_tokens"),
        ),
        (Stop::Refusal { category: None }, "no", "completed", None),
        (
            Stop::Refusal { category: None },
            "",
            "incomplete",
            Some("content_filter"),
        ),
        (
            Stop::Filter(None),
            "a",
            "incomplete",
            Some("content_filter"),
        ),
        (Stop::Paused, "a", "incomplete", None),
    ] {
        let response = Response {
            blocks: vec![text(said)],
            stop,
            usage: None,
        };
        let body = write_response(&response, &context(Request::default()));
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["status"], status, "{:?}", response.stop);
        assert_eq!(body["incomplete_details"]["reason"].as_str(), reason);
    }
}

#[test]
fn opaque_data_of_others_travels_in_reasoning_items() {
    let opaque = |origin| Opaque {
        origin,
        model: "x/y".into(),
        text: "sig".into(),
    };
    let signature = opaque(Dialect::Generate);
    let response = Response {
        blocks: vec![
            ResponseBlock {
                kind: Block::Thought,
                opaque: Some(opaque(Dialect::Messages)),
                ..text("Hm.")
            },
            ResponseBlock {
                opaque: Some(signature.clone()),
                ..text("Well.")
            },
            ResponseBlock {
                kind: Block::ToolCall {
                    id: "c".to_owned(),
                    name: "f".to_owned(),
                },
                opaque: Some(signature.clone()),
                ..text("")
            },
        ],
        stop: Stop::ToolCalls,
        usage: None,
    };
    let body = write_response(&response, &context(Request::default()));
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let output = body["output"].as_array().unwrap();
    let kinds: Vec<&str> = output
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "reasoning",
            "message",
            "reasoning",
            "reasoning",
            "function_call"
        ]
    );
    let sealed = |at: usize| Opaque::unwrap(output[at]["encrypted_content"].as_str().unwrap());
    assert_eq!(sealed(0), Some(opaque(Dialect::Messages)));
    assert_eq!(sealed(2).as_ref(), Some(&signature));
    assert_eq!(sealed(3).as_ref(), Some(&signature));
    assert_eq!(output[4]["arguments"], "{}");
}

#[test]
fn bodies_that_are_not_answers_are_errors() {
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "{",
        r#"{"output":[{"type":"function_call"}]}"#,
    ] {
        let broken = read_response(body.as_bytes(), MODEL);
        assert!(
            matches!(broken, Err(UnusableAnswer::Malformed(_))),
            "{body}: {broken:?}"
        );
    }
    for (body, code) in [
        (r#"{"status":"failed","output":[]}"#, Code::UpstreamError),
        (
            r#"{"status":"failed","error":{"code":"rate_limit_exceeded","message":"x"}}"#,
            Code::UpstreamOverloaded,
        ),
        (r#"{"error":{"message":"x"}}"#, Code::UpstreamError),
    ] {
        match read_response(body.as_bytes(), MODEL) {
            Err(UnusableAnswer::Failure(failure)) => assert_eq!(failure.code, code, "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
}

proptest! {
    #[test]
    fn written_values_read_back(response in any_response()) {
        let body = write_response(&response, &context(Request::default()));
        prop_assert_eq!(read_response(&body, MODEL).unwrap(), response);
    }
}
