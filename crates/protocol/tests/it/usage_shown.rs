//! Tests of the usage reports that clients see on the native path.

use bytes::Bytes;
use protocol::native::{AnswerSummary, Identity, Rewriter, rewrite_answer};
use protocol::{ByteQueue, Dialect};
use serde_json::{Value, json};

fn identity() -> Identity {
    Identity {
        id: "ours".into(),
        model: "maker/m".into(),
        created: 1_794_867_059,
    }
}

fn relay(dialect: Dialect, include_usage: bool, stream: &str) -> (String, AnswerSummary) {
    let mut rewriter = Rewriter::new(dialect, identity(), include_usage);
    let mut out = ByteQueue::new();
    rewriter
        .push(Bytes::copy_from_slice(stream.as_bytes()), &mut out)
        .unwrap();
    rewriter.end(&mut out).unwrap();
    let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
    (text, rewriter.summary().clone())
}

const DONE: &str = "data: [DONE]\n\n";
const COUNTED: &str = r#"{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16}"#;
const COSTLY: &str = r#"{"prompt_tokens":9,"cost":0.25,"completion_tokens":7,"total_tokens":16,"cost_details":{"upstream_inference_cost":0.2}}"#;

/// If the client did not ask for usage, a chunk without output is withheld for any form of its `choices`.
/// Its usage is recorded.
#[test]
fn a_chunk_with_only_usage_is_withheld() {
    for choices in [
        "[]",
        "null",
        r#"[{"index":0,"delta":{}}]"#,
        r#"[{"index":0,"delta":{},"finish_reason":null,"logprobs":null}]"#,
        r#"[{"index":0,"delta":{"content":"","role":null,"tool_calls":null},"finish_reason":null}]"#,
        r#"[{"index":0,"delta":{"content":null},"finish_reason":null},{"index":1,"delta":{}}]"#,
    ] {
        for usage in [COUNTED, COSTLY] {
            let chunk = |id: &str, usage: &str| {
                let start = format!(r#"data: {{"id":"{id}","created":7,"model":"maker/m","#);
                start + &format!("\"choices\":{choices},\"usage\":{usage}}}\n\n{DONE}")
            };
            let stream = chunk("x", usage);
            let (text, summary) = relay(Dialect::Chat, false, &stream);
            assert_eq!(text, DONE, "{choices}");
            assert_eq!(summary.usage.unwrap().output, 7, "{choices}");
            let (text, _) = relay(Dialect::Chat, true, &stream);
            assert_eq!(text, chunk("ours", COUNTED));
        }
    }
}

#[test]
fn usage_beside_output_is_not_shown_to_those_who_did_not_ask() {
    for choices in [
        r#"[{"index":0,"delta":{"content":"Hi"}}]"#,
        r#"[{"index":0,"delta":{"role":"assistant"}}]"#,
        r#"[{"index":0,"delta":{},"finish_reason":"stop"}]"#,
    ] {
        let chunk = |usage: &str| {
            // Every chunk starts with the same bytes, so the second one uses the known start.
            let chunk = format!(
                r#"data: {{"id":"ours","created":7,"model":"maker/m","choices":{choices},"usage":{usage}}}"#
            );
            format!("{chunk}\n\n{chunk}\n\n{DONE}")
        };
        let (text, summary) = relay(Dialect::Chat, false, &chunk(COSTLY));
        assert_eq!(text, chunk("null"), "{choices}");
        assert_eq!(summary.usage.unwrap().output, 7);
        let (text, _) = relay(Dialect::Chat, true, &chunk(COSTLY));
        assert_eq!(text, chunk(COUNTED), "{choices}");
        let spread = chunk(COSTLY).replace(",\"usage\"", ",\ndata: \"usage\"");
        let (text, _) = relay(Dialect::Chat, true, &spread);
        assert!(!text.contains("cost") && text.contains(COUNTED), "{text}");
    }
}

/// One answer of each dialect, with a report that contains costs.
fn answers() -> [(Dialect, Value); 5] {
    let cost = |mut usage: Value| {
        usage["cost"] = json!(0.25);
        usage["cost_in_usd_ticks"] = json!(25);
        usage
    };
    [
        (
            Dialect::Chat,
            json!({"id": "x", "choices": [{"index": 0, "message": {"content": "Hi"}}],
                "usage": cost(json!({"prompt_tokens": 9, "completion_tokens": 7}))}),
        ),
        (
            Dialect::Responses,
            json!({"id": "x", "status": "completed", "output": [],
                "usage": cost(json!({"input_tokens": 9, "output_tokens": 7}))}),
        ),
        (
            Dialect::Messages,
            json!({"id": "x", "content": [],
                "usage": cost(json!({"input_tokens": 9, "output_tokens": 7}))}),
        ),
        (
            Dialect::Generate,
            json!({"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
                "usageMetadata": cost(json!({"promptTokenCount": 9, "candidatesTokenCount": 7}))}),
        ),
        (
            Dialect::Interactions,
            json!({"id": "x", "status": "completed", "steps": [],
                "usage": cost(json!({"total_input_tokens": 9, "total_output_tokens": 7}))}),
        ),
    ]
}

/// The event with the usage of an answer in a stream.
fn last_event(dialect: Dialect, answer: &Value) -> String {
    let usage = &answer["usage"];
    let event = match dialect {
        Dialect::Chat => return format!("data: {answer}\n\n{DONE}"),
        Dialect::Generate => return format!("data: {answer}\n\n"),
        Dialect::Responses => json!({"type": "response.completed", "response": answer}),
        Dialect::Interactions => {
            json!({"event_type": "interaction.completed", "interaction": answer})
        }
        Dialect::Messages => {
            let event = json!({"type": "message_delta", "delta": {}, "usage": usage});
            return format!("data: {event}\n\ndata: {{\"type\":\"message_stop\"}}\n\n");
        }
    };
    format!("data: {event}\n\n")
}

#[test]
fn the_upstreams_cost_is_never_shown() {
    for (dialect, answer) in answers() {
        let body = Bytes::from(answer.to_string());
        let whole = rewrite_answer(dialect, body, &identity()).unwrap();
        assert_eq!(whole.usage.unwrap().output, 7, "{dialect}");
        let whole = String::from_utf8(whole.pieces.into_bytes().to_vec()).unwrap();
        let (stream, summary) = relay(dialect, true, &last_event(dialect, &answer));
        assert_eq!(summary.usage.unwrap().output, 7, "{dialect}");
        for text in [whole, stream] {
            assert!(
                text.contains('7') && !text.contains("cost"),
                "{dialect}: {text}"
            );
        }
    }
}
