//! Whole chat answers: the identity is replaced, the usage is read, and a body that is not an
//! answer is refused.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::native::{Answer, Identity, UnusableAnswer, read_failure, rewrite_answer};
use protocol::scrub::Names;
use protocol::{Code, Dialect, Usage};

pub(crate) fn identity() -> Identity {
    Identity {
        id: "chatcmpl_ours".into(),
        model: "maker/m".into(),
        created: 1_794_867_059,
    }
}

fn rewrite(body: &str) -> Result<Answer, UnusableAnswer> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    rewrite_answer(Dialect::Chat, body, &identity())
}

fn text(answer: Answer) -> String {
    String::from_utf8(answer.pieces.into_bytes().to_vec()).unwrap()
}

const ANSWER: &str = r#"{"id":"chatcmpl-theirs", "object":"chat.completion","created":1760000000,
 "model": "up-2026","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there, how are you?",
 "refusal":null,"model":"up-inside"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,
 "completion_tokens":30,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":null},
 "completion_tokens_details":{"reasoning_tokens":10}},"system_fingerprint":"fp_1","id2":"x"}"#;

#[test]
fn identity_is_replaced_and_nothing_else() {
    let answer = rewrite(ANSWER).unwrap();
    let usage = Usage {
        input: 36,
        cached_input: 64,
        output: 30,
        reasoning: 10,
        ..Usage::default()
    };
    assert_eq!(answer.usage, Some(usage));
    assert!(!answer.usage_malformed);
    assert_eq!(answer.output_tokens_counted, 0);
    let without_usage = rewrite(&ANSWER.replace("\"usage\"", "\"used\"")).unwrap();
    assert!((4..=9).contains(&without_usage.output_tokens_counted));
    let expected = ANSWER
        .replace("chatcmpl-theirs", "chatcmpl_ours")
        .replace("up-2026", "maker/m");
    assert_eq!(text(answer), expected);
}

#[test]
fn identity_is_found_in_any_order_and_form() {
    for (body, expected) in [
        (
            r#"{"choices":[],"model":"up","id":"x","created":7}"#,
            r#"{"choices":[],"model":"maker/m","id":"chatcmpl_ours","created":7}"#,
        ),
        (
            r#"{"mod\u0065l":null,"choices":[],"id":{"a":[1]},"created":7.5}"#,
            r#"{"mod\u0065l":"maker/m","choices":[],"id":"chatcmpl_ours","created":7.5}"#,
        ),
        (
            r#"{"id":"x","created":7,"model":"up","choices":[],"model":"up2"}"#,
            r#"{"id":"chatcmpl_ours","created":7,"model":"maker/m","choices":[],"model":"maker/m"}"#,
        ),
        (
            r#"{"id":"x","created":7,"model":"up","error":null,"choices":[]}"#,
            r#"{"id":"chatcmpl_ours","created":7,"model":"maker/m","error":null,"choices":[]}"#,
        ),
    ] {
        assert_eq!(text(rewrite(body).unwrap()), expected);
    }
}

#[test]
fn a_large_answer_is_not_copied() {
    let body = Bytes::from(format!(
        r#"{{"id":"x","model":"up","created":7,"choices":[{{"message":{{"content":"{}"}}}}]}}"#,
        "word ".repeat(40_000)
    ));
    let mut answer = rewrite_answer(Dialect::Chat, body.clone(), &identity()).unwrap();
    let off = answer.output_tokens_counted.abs_diff(40_000);
    assert!(off < 4_000, "{}", answer.output_tokens_counted);
    assert_eq!(
        answer.pieces.pop().unwrap(),
        &br#"{"id":"chatcmpl_ours","model":"maker/m""#[..]
    );
    assert_eq!(answer.pieces.pop().unwrap().as_ptr(), body[22..].as_ptr());
}

#[test]
fn bodies_that_are_not_answers_are_errors() {
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "<html>",
        r#"{"id":"x"}"#,
        r#"{"id":"x","choices":null}"#,
        r#"{"id":"x","choices":{}}"#,
        r#"{"choices":[]"#,
        r#"{"choices":[]}}"#,
    ] {
        let broken = rewrite(body).unwrap_err();
        assert!(matches!(broken, UnusableAnswer::Malformed(_)), "{body}");
        assert_eq!(broken.into_failure().code, Code::UpstreamError);
    }
    let invalid = Bytes::from_static(b"{\"choices\":[\"\xff\"]}");
    assert!(rewrite_answer(Dialect::Chat, invalid, &identity()).is_err());
}

#[test]
fn an_error_body_in_a_200_is_the_error_it_is() {
    for (body, code) in [
        (
            r#"{"error":{"message":"up-2026 broke","type":"server_error"}}"#,
            Code::UpstreamError,
        ),
        (
            r#"{"id":"x","choices":[],"error":{"code":429}}"#,
            Code::UpstreamOverloaded,
        ),
        (r#"{"error":"no"}"#, Code::UpstreamError),
        (r#"{"error":{}}"#, Code::UpstreamError),
        (
            r#"{"object":"error","message":"too long","type":"invalid_request_error"}"#,
            Code::UpstreamRejected,
        ),
    ] {
        let UnusableAnswer::Failure(failure) = rewrite(body).unwrap_err() else {
            panic!("{body}");
        };
        assert_eq!(failure.code, code, "{body}");
        assert!(!failure.message.contains("up-2026"));
    }
    for body in [
        r#"{"error":false,"choices":[]}"#,
        r#"{"error":"","choices":[]}"#,
    ] {
        assert!(rewrite(body).is_ok(), "{body}");
    }
}

#[test]
fn usage_that_is_not_a_number_is_missing() {
    for (usage, read, malformed) in [
        ("null", None, false),
        (
            r#"{"prompt_tokens":1,"completion_tokens":2}"#,
            Some((1, 2)),
            false,
        ),
        (
            r#"{"prompt_tokens":0,"completion_tokens":0}"#,
            Some((0, 0)),
            false,
        ),
        (
            r#"{"prompt_tokens":1.0,"completion_tokens":2}"#,
            Some((1, 2)),
            false,
        ),
        (r#"{"prompt_tokens":1}"#, None, true),
        (r#"{"prompt_tokens":-1,"completion_tokens":2}"#, None, true),
        (r#"{"prompt_tokens":"1","completion_tokens":2}"#, None, true),
        (
            r#"{"prompt_tokens":null,"completion_tokens":2}"#,
            None,
            true,
        ),
        (
            r#"{"prompt_tokens":9223372036854775807,"completion_tokens":2}"#,
            Some((i64::MAX as u64, 2)),
            false,
        ),
        (
            r#"{"prompt_tokens":9223372036854775808,"completion_tokens":2}"#,
            None,
            true,
        ),
        ("{}", None, true),
        ("[1]", None, true),
        ("5", None, true),
        // Reasoning that is not part of the completion tokens is visible in the total.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}}"#,
            Some((10, 12)),
            false,
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":99,"completion_tokens_details":{"reasoning_tokens":4}}"#,
            Some((10, 5)),
            false,
        ),
        // Invalid details change nothing.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-3},"completion_tokens_details":7}"#,
            Some((10, 5)),
            false,
        ),
    ] {
        let answer = rewrite(&format!(r#"{{"choices":[],"usage":{usage}}}"#)).unwrap();
        let totals = answer
            .usage
            .map(|usage| (usage.input_total(), usage.output_total()));
        assert_eq!(totals, read, "{usage}");
        assert_eq!(answer.usage_malformed, malformed, "{usage}");
    }
}

#[test]
fn refusals_are_read_with_the_public_name() {
    let body = br#"{"error":{"message":"up-2026 takes 4 images","param":"messages"}}"#;
    let failure = read_failure(
        Dialect::Chat,
        400,
        body,
        Names::of_model("up-2026", "maker/m"),
    );
    assert_eq!(failure.code, Code::UpstreamRejected);
    assert_eq!(failure.message, "maker/m takes 4 images");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = rewrite_answer(Dialect::Chat, Bytes::from(bytes), &identity());
    }

    #[test]
    fn a_cut_answer_is_broken(at in 0..ANSWER.len()) {
        prop_assert!(rewrite(&ANSWER[..at]).is_err());
    }
}
