//! Some upstreams report zeros for usage that they do not know. If there is output, zeros are not a
//! report: in every dialect, whole and streamed, native and converted.

use std::sync::Arc;

use bytes::Bytes;
use protocol::canon::{AnswerContext, Request};
use protocol::convert::{Transcoder, convert_answer};
use protocol::native::{AnswerSummary, Rewriter, rewrite_answer};
use protocol::{ByteQueue, Dialect, Usage};

use crate::answers::identity;

const DIALECTS: [Dialect; 5] = [
    Dialect::Chat,
    Dialect::Responses,
    Dialect::Messages,
    Dialect::Generate,
    Dialect::Interactions,
];
/// Input tokens as counted at admission.
const INPUT: u64 = 40;

/// An answer with `TEXT`, whose usage report has only zeros.
fn whole(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => {
            r#"{"id":"x","model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"TEXT"},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}"#
        }
        Dialect::Responses => {
            r#"{"id":"x","model":"up","status":"completed","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"TEXT","annotations":[]}]}],"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}"#
        }
        Dialect::Messages => {
            r#"{"id":"x","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"TEXT"}],"stop_reason":"end_turn","usage":{"input_tokens":0,"output_tokens":0}}"#
        }
        Dialect::Generate => {
            r#"{"responseId":"x","modelVersion":"up","candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"TEXT"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}}"#
        }
        Dialect::Interactions => {
            r#"{"id":"x","model":"up","status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"TEXT"}]}],"usage":{"total_input_tokens":0,"total_output_tokens":0,"total_tokens":0}}"#
        }
    }
}

/// The same answer as a stream.
fn streamed(dialect: Dialect) -> String {
    let named = |events: &[(&str, &str)]| -> String {
        let frame = |(kind, data): &(&str, &str)| format!("event: {kind}\ndata: {data}\n\n");
        events.iter().map(frame).collect()
    };
    match dialect {
        Dialect::Chat => concat!(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"TEXT\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0}}\n\n",
            "data: [DONE]\n\n",
        )
        .to_owned(),
        Dialect::Responses => named(&[
            (
                "response.created",
                r#"{"type":"response.created","sequence_number":0,"response":{"id":"x","model":"up","status":"in_progress","output":[]}}"#,
            ),
            (
                "response.output_item.added",
                r#"{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"m","type":"message","role":"assistant","status":"in_progress","content":[]}}"#,
            ),
            (
                "response.content_part.added",
                r#"{"type":"response.content_part.added","sequence_number":2,"item_id":"m","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
            ),
            (
                "response.output_text.delta",
                r#"{"type":"response.output_text.delta","sequence_number":3,"item_id":"m","output_index":0,"content_index":0,"delta":"TEXT"}"#,
            ),
            (
                "response.completed",
                r#"{"type":"response.completed","sequence_number":4,"response":{"id":"x","model":"up","status":"completed","output":[{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"TEXT","annotations":[]}]}],"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}}"#,
            ),
        ]),
        Dialect::Messages => named(&[
            (
                "message_start",
                r#"{"type":"message_start","message":{"id":"x","type":"message","role":"assistant","model":"up","content":[],"usage":{"input_tokens":0,"output_tokens":0}}}"#,
            ),
            (
                "content_block_start",
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            ),
            (
                "content_block_delta",
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"TEXT"}}"#,
            ),
            (
                "content_block_stop",
                r#"{"type":"content_block_stop","index":0}"#,
            ),
            (
                "message_delta",
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":0}}"#,
            ),
            ("message_stop", r#"{"type":"message_stop"}"#),
        ]),
        Dialect::Generate => format!("data: {}\n\n", whole(Dialect::Generate)),
        Dialect::Interactions => named(&[
            (
                "interaction.created",
                r#"{"event_type":"interaction.created","interaction":{"id":"x","model":"up","status":"in_progress"}}"#,
            ),
            (
                "step.start",
                r#"{"event_type":"step.start","index":0,"step":{"type":"model_output"}}"#,
            ),
            (
                "step.delta",
                r#"{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"TEXT"}}"#,
            ),
            ("step.stop", r#"{"event_type":"step.stop","index":0}"#),
            (
                "interaction.completed",
                r#"{"event_type":"interaction.completed","interaction":{"id":"x","model":"up","status":"completed","usage":{"total_input_tokens":0,"total_output_tokens":0,"total_tokens":0}}}"#,
            ),
            ("done", "[DONE]"),
        ]),
    }
}

/// Names of the input in reports.
const INPUT_WORDS: [&str; 4] = [
    "prompt_tokens",
    "input_tokens",
    "promptTokenCount",
    "total_input_tokens",
];
/// Names of the output in reports.
const OUTPUT_WORDS: [&str; 4] = [
    "completion_tokens",
    "output_tokens",
    "candidatesTokenCount",
    "total_output_tokens",
];

fn context() -> AnswerContext {
    AnswerContext {
        id: "ours".into(),
        model: "maker/m".into(),
        created: 1,
        input_tokens: INPUT,
        request: Arc::new(Request {
            include_usage: true,
            ..Request::default()
        }),
    }
}

/// The summaries of an answer with this text, on every path that it can take to a client. All
/// counts in its report are zero, except for those named in `nonzero`.
fn summary(dialect: Dialect, text: &str, nonzero: &[&str]) -> Vec<(String, AnswerSummary)> {
    let fill_in = |answer: String| {
        nonzero
            .iter()
            .fold(answer.replace("TEXT", text), |answer, part| {
                answer.replace(&format!("\"{part}\":0"), &format!("\"{part}\":9"))
            })
    };
    let body = Bytes::from(fill_in(whole(dialect).to_owned()));
    let stream = Bytes::from(fill_in(streamed(dialect)));
    let is_input = |part: &&str| INPUT_WORDS.contains(part);
    let input = if nonzero.iter().any(is_input) {
        ":9"
    } else {
        ":40"
    };
    let mut all = Vec::new();
    let answer = rewrite_answer(dialect, body.clone(), &identity()).unwrap();
    all.push((format!("{dialect:?} whole"), answer.summary()));
    let mut rewriter = Rewriter::new(dialect, identity(), true);
    let mut out = ByteQueue::new();
    rewriter.push(stream.clone(), &mut out).unwrap();
    rewriter.end(&mut out).unwrap();
    all.push((format!("{dialect:?} stream"), rewriter.summary().clone()));
    for to in DIALECTS.into_iter().filter(|to| *to != dialect) {
        let answer = convert_answer(dialect, to, &body, &context()).unwrap();
        all.push((format!("{dialect:?} to {to:?}, whole"), answer.summary()));
        let answer_text = String::from_utf8(answer.pieces.into_bytes().to_vec()).unwrap();
        assert_eq!(
            answer_text.contains(input),
            !text.is_empty(),
            "{answer_text}"
        );
        let mut transcoder = Transcoder::new(dialect, to, context());
        let mut out = ByteQueue::new();
        transcoder.push(stream.clone(), &mut out).unwrap();
        transcoder.end(&mut out).unwrap();
        all.push((
            format!("{dialect:?} to {to:?}, stream"),
            transcoder.summary().clone(),
        ));
        let answer_text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
        assert!(
            text.is_empty() || answer_text.contains(input),
            "{answer_text}"
        );
    }
    all
}

#[test]
fn zeros_beside_output_are_not_a_report() {
    for dialect in DIALECTS {
        for (way, summary) in summary(dialect, "Four words of text", &[]) {
            assert_eq!(summary.usage, Some(Usage::default()), "{way}");
            assert_eq!(summary.report(), None, "{way}");
            let counted = summary.counted(INPUT);
            assert_eq!(counted.input_total(), INPUT, "{way}");
            assert!((2..=8).contains(&counted.output), "{way}: {counted:?}");
        }
    }
}

#[test]
fn zeros_without_output_are_believed() {
    for dialect in DIALECTS {
        for (way, summary) in summary(dialect, "", &[]) {
            assert_eq!(summary.report(), Some(Usage::default()), "{way}");
        }
    }
}

/// A zero is a missing count if there is text. The other count of the report is used.
#[test]
fn a_partial_report_is_completed_by_our_count() {
    for dialect in DIALECTS {
        for (way, summary) in summary(dialect, "Four words of text", &INPUT_WORDS) {
            assert_eq!(summary.report(), None, "{way}");
            let counted = summary.counted(INPUT);
            assert_eq!(counted.input_total(), 9, "{way}");
            assert!((2..=8).contains(&counted.output), "{way}: {counted:?}");
        }
        for (way, summary) in summary(dialect, "Four words of text", &OUTPUT_WORDS) {
            assert_eq!(summary.report(), None, "{way}");
            let counted = summary.counted(INPUT);
            assert_eq!((counted.input_total(), counted.output), (INPUT, 9), "{way}");
        }
    }
}
