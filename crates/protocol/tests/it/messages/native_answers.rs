//! Tests of whole messages on the native path.

use bytes::Bytes;
use protocol::native::{Answer, Identity, UnusableAnswer, rewrite_answer};
use protocol::{Code, Dialect, Usage};

pub(super) fn identity() -> Identity {
    Identity {
        id: "msg_ours".into(),
        model: "maker/m".into(),
        created: 1_794_867_059,
    }
}

fn rewrite(body: &str) -> Result<Answer, UnusableAnswer> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    rewrite_answer(Dialect::Messages, body, &identity())
}

const ANSWER: &str = r#"{"id":"msg_theirs","type":"message","role":"assistant","model":"up-2026",
 "content":[{"type":"thinking","thinking":"Let me see.","signature":"EqQB+/=="},
 {"type":"text","text":"Hello there, how are you?"},
 {"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Paris","model":"x"}}],
 "stop_reason":"tool_use","stop_sequence":null,"container":{"id":"c_1"},
 "usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":64,"output_tokens":30}}"#;

#[test]
fn identity_is_replaced_and_nothing_else() {
    let answer = rewrite(ANSWER).unwrap();
    let usage = Usage {
        input: 10,
        cached_input: 64,
        cache_write: 5,
        output: 30,
        ..Usage::default()
    };
    assert_eq!(answer.usage, Some(usage));
    assert_eq!(answer.output_tokens_counted, 0);
    let without_usage = rewrite(&ANSWER.replace("\"usage\"", "\"used\"")).unwrap();
    let counted = without_usage.output_tokens_counted;
    assert!((14..=30).contains(&counted), "{counted}");
    let text = String::from_utf8(answer.pieces.into_bytes().to_vec()).unwrap();
    let expected = ANSWER
        .replace("msg_theirs", "msg_ours")
        .replace("up-2026", "maker/m");
    assert_eq!(text, expected);
}

#[test]
fn an_empty_answer_is_one() {
    let answer =
        r#"{"id":"x","type":"message","content":[],"usage":{"input_tokens":1,"output_tokens":0}}"#;
    assert_eq!(rewrite(answer).unwrap().usage.unwrap().output, 0);
}

#[test]
fn bodies_that_are_not_messages_are_errors() {
    for body in [
        "",
        "{}",
        "[]",
        "<html>",
        r#"{"id":"x","type":"message"}"#,
        r#"{"id":"x","content":"Hi"}"#,
        r#"{"id":"x","content":[]"#,
    ] {
        assert!(
            matches!(rewrite(body), Err(UnusableAnswer::Malformed(_))),
            "{body}"
        );
    }
    for (body, code) in [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Code::UpstreamOverloaded,
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
            Code::UpstreamRejected,
        ),
        (r#"{"type":"error"}"#, Code::UpstreamError),
    ] {
        let Err(UnusableAnswer::Failure(failure)) = rewrite(body) else {
            panic!("{body}");
        };
        assert_eq!(failure.code, code, "{body}");
    }
}
