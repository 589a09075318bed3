//! Whole answers from upstreams of the client's dialect, although the client asked for a stream. The stream
//! contains everything that the answer contains, in the answer's own members.

mod any;
mod assemble;

use bytes::Bytes;
use proptest::prelude::*;
use protocol::native::{Rewriter, UnusableAnswer, rewrite_answer};
use protocol::{ByteQueue, Dialect};
use serde_json::{Value, json};

use super::streams::identity;

/// The stream that a client receives, and its rewriter.
fn stream_of(dialect: Dialect, body: &str) -> Result<(String, Rewriter), UnusableAnswer> {
    let mut rewriter = Rewriter::new(dialect, identity(dialect), true);
    let mut out = ByteQueue::new();
    rewriter.push(Bytes::copy_from_slice(body.as_bytes()), &mut out)?;
    rewriter.end(&mut out)?;
    let stream = String::from_utf8(out.into_bytes().to_vec()).unwrap();
    Ok((stream, rewriter))
}

/// The answer that a client receives if it did not ask for a stream.
fn answer_of(dialect: Dialect, body: &str) -> Result<protocol::native::Answer, UnusableAnswer> {
    rewrite_answer(
        dialect,
        Bytes::copy_from_slice(body.as_bytes()),
        &identity(dialect),
    )
}

proptest! {
    /// Assembling the stream yields the whole answer, and both are billed alike.
    #[test]
    fn an_assembled_stream_is_the_whole_answer((dialect, answer) in any::answer(), pretty: bool) {
        let body = if pretty {
            serde_json::to_string_pretty(&answer).unwrap()
        } else {
            answer.to_string()
        };
        let whole = answer_of(dialect, &body).unwrap();
        let summary = whole.summary();
        let whole: Value = serde_json::from_slice(&whole.pieces.into_bytes()).unwrap();
        let (stream, rewriter) = stream_of(dialect, &body).unwrap();
        let lines = ['\u{85}', '\u{2028}', '\u{2029}', '\r'];
        prop_assert!(!stream.contains(lines), "{}", stream);
        let assembled = assemble::assemble(dialect, &stream);
        prop_assert_eq!(assembled, assemble::expected(dialect, whole), "{}\n{}", dialect, stream);
        let streamed = rewriter.summary();
        prop_assert!(streamed.ended);
        prop_assert_eq!(streamed.report(), summary.report());
        prop_assert_eq!(streamed.tools, summary.tools);
        prop_assert_eq!(&streamed.pictures, &summary.pictures);
    }

    /// For any answer of the upstream, the client receives a stream or an error.
    #[test]
    fn any_member_may_be_of_any_type((dialect, answer) in any::answer(), seed: u64) {
        let mut answer = answer;
        any::corrupt(&mut answer, seed);
        let body = answer.to_string();
        if let Ok((stream, _)) = stream_of(dialect, &body) {
            prop_assert!(answer_of(dialect, &body).is_ok(), "{}", stream);
            assemble::frames(&stream);
        }
    }
}

#[test]
fn each_choice_of_a_completion_is_streamed() {
    let choice = |index: u64, text: &str| json!({"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
    let body = json!({"id": "x", "object": "chat.completion", "created": 7, "model": "up", "choices": [choice(0, "a"), choice(1, "b"), choice(2, "c")]});
    let (stream, _) = stream_of(Dialect::Chat, &body.to_string()).unwrap();
    let texts: Vec<_> = assemble::assemble(Dialect::Chat, &stream)["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| choice["message"]["content"].clone())
        .collect();
    assert_eq!(texts, ["a", "b", "c"]);
}

/// Each part becomes events that are larger than the part, so the number of parts is limited.
#[test]
fn an_answer_of_too_many_parts_is_refused() {
    for (dialect, answer) in [
        (
            Dialect::Messages,
            json!({"content": vec![json!({}); 20_000]}),
        ),
        (
            Dialect::Chat,
            json!({"choices": vec![json!({"message": {}}); 20_000]}),
        ),
        (
            Dialect::Responses,
            json!({"output": vec![json!({}); 20_000]}),
        ),
        (
            Dialect::Interactions,
            json!({"status": "completed", "steps": vec![json!({}); 20_000]}),
        ),
    ] {
        let refused = stream_of(dialect, &answer.to_string()).map(|(stream, _)| stream.len());
        let Err(UnusableAnswer::Malformed(why)) = refused else {
            panic!("{dialect}: {refused:?}");
        };
        assert_eq!(why, "the answer has too many parts", "{dialect}");
    }
}

/// The memory that the stream needs is counted before the stream is written.
#[test]
fn a_kept_answer_counts_as_often_as_its_stream_repeats_it() {
    let text = "x".repeat(100_000);
    for (dialect, answer) in [
        (
            Dialect::Chat,
            json!({"choices": [{"message": {"content": text}}]}),
        ),
        (
            Dialect::Responses,
            json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}]}),
        ),
        (
            Dialect::Messages,
            json!({"content": [{"type": "text", "text": text}]}),
        ),
        (
            Dialect::Generate,
            json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}),
        ),
        (
            Dialect::Interactions,
            json!({"status": "completed", "steps": [{"type": "model_output", "content": [{"type": "text", "text": text}]}]}),
        ),
    ] {
        let body = answer.to_string();
        let mut rewriter = Rewriter::new(dialect, identity(dialect), true);
        let mut out = ByteQueue::new();
        let bytes = Bytes::from(body);
        rewriter.push(bytes.clone(), &mut out).unwrap();
        let held = rewriter.held_bytes();
        rewriter.end(&mut out).unwrap();
        assert!(held >= out.len(), "{dialect}: {held} for {}", out.len());
        assert!(held <= 3 * out.len(), "{dialect}: {held} for {}", out.len());
    }
}

#[test]
fn bodies_that_are_not_answers_are_refused() {
    for (dialect, body) in [
        (Dialect::Chat, r#"{"choices":[7]}"#),
        (Dialect::Chat, r#"{"choices":[{"index":0}]}"#),
        (
            Dialect::Chat,
            r#"{"choices":[{"message":{"tool_calls":[1]}}]}"#,
        ),
        (Dialect::Chat, r#"{"error":{"message":"no"}}"#),
        (Dialect::Chat, "{}"),
        (Dialect::Chat, r#"{"choices":[]"#),
        (Dialect::Chat, r#"{"choices":[]} {"#),
        (Dialect::Messages, r#"{"content":[1]}"#),
        (
            Dialect::Messages,
            r#"{"type":"error","error":{"message":"no"}}"#,
        ),
        (Dialect::Responses, r#"{"output":[1]}"#),
        (Dialect::Responses, r#"{"status":"queued","output":[]}"#),
        (Dialect::Responses, r#"{"status":"failed","output":[]}"#),
        (
            Dialect::Responses,
            r#"{"output":[{"type":"message","content":[1]}]}"#,
        ),
        (
            Dialect::Responses,
            r#"{"output":[{"type":"function_call","arguments":{}}]}"#,
        ),
        (
            Dialect::Interactions,
            r#"{"status":"in_progress","steps":[]}"#,
        ),
        (
            Dialect::Interactions,
            r#"{"status":"completed","steps":[1]}"#,
        ),
        (Dialect::Generate, r#"{"usageMetadata":{}}"#),
        (Dialect::Generate, "[1,1]"),
        (Dialect::Generate, "[{}]"),
    ] {
        assert!(stream_of(dialect, body).is_err(), "{dialect}: {body}");
    }
}
