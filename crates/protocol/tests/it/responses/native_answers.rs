//! Tests of whole answers on the native path.

use bytes::Bytes;
use protocol::native::{Answer, Identity, UnusableAnswer, rewrite_answer};
use protocol::{Code, Dialect, Usage};

pub(super) fn identity() -> Identity {
    Identity {
        id: "resp_ours".into(),
        model: "maker/m".into(),
        created: 1_794_867_059,
    }
}

fn rewrite(body: &str) -> Result<Answer, UnusableAnswer> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    rewrite_answer(Dialect::Responses, body, &identity())
}

fn text(answer: Answer) -> String {
    String::from_utf8(answer.pieces.into_bytes().to_vec()).unwrap()
}

const ANSWER: &str = r#"{"id":"resp_theirs","object":"response","created_at":1760000000,"status":"completed",
 "background":false,"error":null,"incomplete_details":null,"model":"up-2026","output":[{"id":"rs_1","type":"reasoning",
 "summary":[],"encrypted_content":"gAAAAAB"},{"id":"msg_1","type":"message","role":"assistant","status":"completed",
 "content":[{"type":"output_text","text":"Hello there, how are you?","annotations":[],"model":"inside"}]}],
 "store":true,"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64,"cache_write_tokens":6},
 "output_tokens":30,"output_tokens_details":{"reasoning_tokens":10},"total_tokens":130},"user":null}"#;

#[test]
fn identity_is_replaced_and_nothing_is_said_to_be_kept() {
    let answer = rewrite(ANSWER).unwrap();
    let usage = Usage {
        input: 30,
        cached_input: 64,
        cache_write: 6,
        output: 30,
        reasoning: 10,
        ..Usage::default()
    };
    assert_eq!(answer.usage, Some(usage));
    assert_eq!(answer.output_tokens_counted, 0);
    let without_usage = rewrite(&ANSWER.replace("\"usage\"", "\"used\"")).unwrap();
    assert!((4..=9).contains(&without_usage.output_tokens_counted));
    let expected = ANSWER
        .replace("resp_theirs", "resp_ours")
        .replace("up-2026", "maker/m")
        .replace(r#""store":true"#, r#""store":false"#);
    assert_eq!(text(answer), expected);
}

#[test]
fn an_answer_that_does_not_say_store_is_made_to() {
    for (body, expected) in [
        (
            r#"{"id":"x","created_at":7,"output":[],"model":"up"}"#,
            r#"{"store":false,"id":"resp_ours","created_at":7,"output":[],"model":"maker/m"}"#,
        ),
        (
            r#"{"store":null,"id":"x","created_at":0,"output":[]}"#,
            r#"{"model":"maker/m","store":false,"id":"resp_ours","created_at":1794867059,"output":[]}"#,
        ),
    ] {
        assert_eq!(text(rewrite(body).unwrap()), expected);
    }
}

#[test]
fn bodies_that_are_not_answers_are_errors() {
    for body in [
        "",
        "{}",
        "[]",
        r#"{"id":"x"}"#,
        r#"{"id":"x","output":null}"#,
        "{",
    ] {
        assert!(
            matches!(rewrite(body), Err(UnusableAnswer::Malformed(_))),
            "{body}"
        );
    }
    for (body, code) in [
        (
            r#"{"id":"x","status":"failed","output":[],"error":{"code":"server_error","message":"up-2026 broke"}}"#,
            Code::UpstreamError,
        ),
        (
            r#"{"id":"x","status":"failed","output":[]}"#,
            Code::UpstreamError,
        ),
        (
            r#"{"id":"x","status":"failed","output":[],"error":{"code":"invalid_prompt","message":"no"}}"#,
            Code::UpstreamRejected,
        ),
        (
            r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#,
            Code::UpstreamOverloaded,
        ),
    ] {
        let Err(UnusableAnswer::Failure(failure)) = rewrite(body) else {
            panic!("{body}");
        };
        assert_eq!(failure.code, code);
        assert!(!failure.message.contains("up-2026"));
    }
}
