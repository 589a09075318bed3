//! Tests of an upstream's texts about itself inside an answer that is otherwise relayed unchanged.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::native::{Identity, Rewriter, rewrite_answer};
use protocol::{ByteQueue, Dialect};

/// A place for a text of the upstream in a whole answer, or in an event of a stream.
struct TextPlace {
    dialect: Dialect,
    whole: &'static str,
    /// An event, and the end of the stream after it.
    event: &'static str,
    end: &'static str,
}

const PLACES: [TextPlace; 6] = [
    TextPlace {
        dialect: Dialect::Messages,
        whole: r#"{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[],"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":"frontier_llm","explanation":WORDS},"usage":{"input_tokens":1,"output_tokens":1}}"#,
        event: r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":"cyber","explanation":WORDS}},"usage":{"output_tokens":1}}"#,
        end: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    },
    TextPlace {
        dialect: Dialect::Generate,
        whole: r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":WORDS},"modelVersion":"up","responseId":"r"}"#,
        event: r#"{"promptFeedback":{"blockReason":"OTHER","blockReasonMessage":WORDS},"modelVersion":"up"}"#,
        end: "",
    },
    TextPlace {
        dialect: Dialect::Generate,
        whole: r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":WORDS,"index":0}],"modelVersion":"up","responseId":"r"}"#,
        event: r#"{"candidates":[{"finishReason":"OTHER","finishMessage":WORDS,"index":0}],"modelVersion":"up"}"#,
        end: "",
    },
    TextPlace {
        dialect: Dialect::Generate,
        whole: r#"{"candidates":[{"finishReason":"STOP"}],"modelStatus":{"modelStage":"DEPRECATED","message":WORDS},"modelVersion":"up","responseId":"r"}"#,
        event: r#"{"candidates":[{"finishReason":"STOP"}],"modelStatus":{"message":WORDS}}"#,
        end: "",
    },
    TextPlace {
        dialect: Dialect::Responses,
        whole: r#"{"id":"resp_1","created_at":7,"store":false,"model":"up","status":"incomplete","incomplete_details":{"reason":"content_filter","message":WORDS},"output":[]}"#,
        event: r#"{"type":"response.incomplete","sequence_number":3,"response":{"id":"resp_1","store":false,"model":"up","status":"incomplete","incomplete_details":{"reason":"max_output_tokens","detail":WORDS},"output":[]}}"#,
        end: "",
    },
    TextPlace {
        dialect: Dialect::Chat,
        whole: r#"{"id":"c","created":7,"model":"up","choices":[{"index":0,"message":{"content":"x"},"error":{"code":502,"message":WORDS}}]}"#,
        event: r#"{"id":"c","model":"up","choices":[{"index":0,"delta":{},"error":{"code":502,"message":WORDS}}]}"#,
        end: "data: [DONE]\n\n",
    },
];

fn identity() -> Identity {
    Identity {
        id: "ours".into(),
        model: "maker/m".into(),
        created: 1_794_867_059,
    }
}

/// The whole answer and the stream for the client, each with the text that the operator sees.
fn shown(place: &TextPlace, words: &str) -> [(String, Option<Box<str>>); 2] {
    let words = serde_json::to_string(words).unwrap();
    let whole = Bytes::from(place.whole.replace("WORDS", &words));
    let answer = rewrite_answer(place.dialect, whole, &identity()).unwrap();
    let mut rewriter = Rewriter::new(place.dialect, identity(), true);
    let mut out = ByteQueue::new();
    let event = place.event.replace("WORDS", &words);
    let stream = format!("data: {event}\n\ndata: {event}\n\n{}", place.end);
    rewriter.push(Bytes::from(stream), &mut out).unwrap();
    rewriter.end(&mut out).unwrap();
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    [
        (text(answer.pieces.into_bytes()), answer.withheld),
        (text(out.into_bytes()), rewriter.summary().withheld.clone()),
    ]
}

fn ours(text: &str) -> String {
    text.replace(r#""up""#, r#""maker/m""#)
}

#[test]
fn plain_words_pass_byte_for_byte() {
    for place in &PLACES {
        let words = "The request was refused by the content policy.";
        let [whole, stream] = shown(place, words);
        let json = serde_json::to_string(words).unwrap();
        let ids = |text: String| {
            let text = ["msg_1", "resp_1"]
                .iter()
                .fold(text, |text, id| text.replace(id, "ours"));
            text.replace(r#""id":"c""#, r#""id":"ours""#)
                .replace(r#""responseId":"r""#, r#""responseId":"ours""#)
        };
        assert_eq!(whole.0, ids(ours(&place.whole.replace("WORDS", &json))));
        assert_eq!((whole.1, stream.1), (None, None));
        assert!(stream.0.contains(&json), "{}", stream.0);
    }
}

#[test]
fn words_that_identify_are_kept_for_the_operator() {
    for place in &PLACES {
        let words = "Acme Corp (api.acme.xyz, acct_4711) blocked zephyr-large-2026";
        for (text, withheld) in shown(place, words) {
            assert_eq!(withheld.as_deref().unwrap().split("; ").next(), Some(words));
            for trace in ["Acme", "acme", "4711", "zephyr"] {
                assert!(!text.contains(trace), "{text}");
            }
            for line in text.lines().filter(|line| line.contains('{')) {
                let json = line.strip_prefix("data: ").unwrap_or(line);
                serde_json::from_str::<serde_json::Value>(json).unwrap();
            }
        }
    }
}

/// Comments and event ids are texts of the server. Some routers put their name into them.
#[test]
fn asides_of_a_stream_are_not_passed_on() {
    let stream = ": ACME PROCESSING\n\nid: acme-7\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"up\",\"content\":[]}}\n\n: acme\ndata: {\"type\":\"message_stop\"}\nretry: 7\n\n";
    let mut rewriter = Rewriter::new(Dialect::Messages, identity(), true);
    let mut out = ByteQueue::new();
    rewriter.push(Bytes::from(stream), &mut out).unwrap();
    assert_eq!(
        out.into_bytes(),
        ": keep-alive\n\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"ours\",\"model\":\"maker/m\",\"content\":[]}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    );
}

proptest! {
    /// Random hosts and ids, in every place.
    #[test]
    fn planted_names_never_pass(
        host in "[a-z]{3,8}\\.[a-z]{2}[a-z0-9]{3,9}q\\.(com|xyz|app|run|dev)",
        id in "(org|proj|acct|req)[-_][a-zA-Z0-9]{6,20}",
        place in 0..PLACES.len(),
    ) {
        let words = format!("The request to {host} of {id} was refused: it is too long");
        for (text, _) in shown(&PLACES[place], &words) {
            prop_assert!(!text.contains(&host) && !text.contains(&id), "{text}");
        }
    }
}

/// The known reasons for an incomplete answer are no text of an upstream about itself.
#[test]
fn the_reason_for_an_incomplete_answer_is_shown() {
    for reason in [
        "max_output_tokens",
        "content_filter",
        "max_messages",
        "steered",
    ] {
        let details = format!(r#""incomplete_details":{{"reason":"{reason}"}}"#);
        let response = format!(
            r#"{{"id":"resp_1","created_at":7,"store":false,"model":"up","status":"incomplete",{details},"output":[]}}"#
        );
        let answer = rewrite_answer(Dialect::Responses, response.clone().into(), &identity());
        let answer = answer.unwrap();
        assert_eq!(answer.withheld, None, "{reason}");
        let whole = answer.pieces.into_bytes();
        assert!(
            std::str::from_utf8(&whole).unwrap().contains(&details),
            "{whole:?}"
        );

        let mut rewriter = Rewriter::new(Dialect::Responses, identity(), true);
        let mut out = ByteQueue::new();
        let event = format!(
            "data: {{\"type\":\"response.incomplete\",\"sequence_number\":3,\"response\":{response}}}\n\n"
        );
        rewriter.push(Bytes::from(event), &mut out).unwrap();
        let shown = out.into_bytes();
        assert!(
            std::str::from_utf8(&shown).unwrap().contains(&details),
            "{shown:?}"
        );
    }
}
