//! Tests scripts in the protocols with named events: Responses and Messages.

use crate::client::{Answer, Ended, messages, responses, start};
use serde_json::{Value, json};
use sim::{CallEnd, Sim};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Responses,
    Messages,
}
use Protocol::{Messages, Responses};

const BOTH: [Protocol; 2] = [Responses, Messages];
const NUMBERS: &str = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10";

impl Protocol {
    async fn ask(self, sim: &Sim, faults: &str, stream: bool) -> Answer {
        let model = format!("sim-chat+{faults}");
        match self {
            Responses => {
                let request = json!({"model": model, "input": "Count to 10", "stream": stream});
                responses(sim, &request).await
            }
            Messages => {
                let request = json!({"model": model, "max_tokens": 100_000, "stream": stream,
                    "messages": [{"role": "user", "content": "Count to 10"}]});
                messages(sim, &request).await
            }
        }
    }

    /// The name of the events that carry text.
    fn content(self) -> &'static str {
        match self {
            Responses => "response.output_text.delta",
            Messages => "content_block_delta",
        }
    }

    /// The text of the content events of a stream.
    fn answer_text(self, events: &[(String, Value)]) -> String {
        let content = events.iter().filter(|(name, _)| name == self.content());
        let piece = |data: &Value| match self {
            Responses => data["delta"].as_str().unwrap().to_owned(),
            Messages => data["delta"]["text"].as_str().unwrap().to_owned(),
        };
        content.map(|(_, data)| piece(data)).collect()
    }

    /// The usage in the last event that has usage.
    fn usage(self, events: &[(String, Value)]) -> Value {
        let place = match self {
            Responses => "/response/usage",
            Messages => "/usage",
        };
        let reported = events
            .iter()
            .rev()
            .find_map(|(_, data)| data.pointer(place));
        reported.cloned().unwrap_or_default()
    }
}

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn answers_break_off_at_the_byte() {
    let sim = start().await;
    for protocol in BOTH {
        for stream in [false, true] {
            for (faults, bytes, ended) in [
                ("cut=100", 100, Ended::Closed),
                ("reset=100", 100, Ended::Reset),
                ("truncate=100", 100, Ended::Whole),
                ("pieces=7+cut=100", 100, Ended::Closed),
            ] {
                let answer = protocol.ask(&sim, faults, stream).await;
                assert_eq!(
                    (answer.status, answer.body.len(), answer.ended),
                    (200, bytes, ended),
                    "{protocol:?} {faults} {stream}"
                );
            }
            let answer = protocol.ask(&sim, "cut=head", stream).await;
            assert_eq!((answer.status, answer.ended), (0, Ended::Closed));
        }
        let answer = protocol.ask(&sim, "cut=content", true).await;
        let events = answer.named_events();
        assert_eq!(protocol.answer_text(&events), "1", "{protocol:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn waits_are_kept() {
    let sim = start().await;
    for protocol in BOTH {
        for (faults, wait_s) in [
            ("delay=300s", 300),
            ("first-byte=200s", 200),
            ("chunk-delay=10s", 180),
            ("slow-usage=100s", 100),
        ] {
            let begun = tokio::time::Instant::now();
            let answer = protocol.ask(&sim, faults, true).await;
            assert_eq!(answer.ended, Ended::Whole);
            assert!(
                begun.elapsed() >= Duration::from_secs(wait_s),
                "{protocol:?} {faults}"
            );
        }
    }
}

#[tokio::test]
async fn a_hanging_call_ends_when_the_caller_goes() {
    let sim = start().await;
    for protocol in BOTH {
        sim.forget_calls();
        let call = protocol.ask(&sim, "hang=content", true);
        let call = tokio::time::timeout(Duration::from_millis(50), call);
        assert!(call.await.is_err());
        let calls = sim.calls_until(|calls| {
            !calls.is_empty() && calls.iter().all(|call| call.end != CallEnd::Open)
        });
        let calls = tokio::time::timeout(Duration::from_secs(5), calls)
            .await
            .unwrap();
        assert_eq!(calls[0].end, CallEnd::Cancelled, "{protocol:?}");
    }
}

#[tokio::test]
async fn substitutes_are_sent() {
    let sim = start().await;
    for protocol in BOTH {
        for stream in [false, true] {
            for status in [
                400, 401, 402, 403, 404, 408, 409, 413, 429, 500, 503, 504, 529,
            ] {
                let faults = format!("status={status}:retry-after=7");
                let answer = protocol.ask(&sim, &faults, stream).await;
                assert_eq!(answer.status, status);
                assert_eq!(answer.header("retry-after"), Some("7"));
                let error = &answer.json()["error"];
                assert!(error["message"].as_str().unwrap().contains("sim-chat"));
                assert!(error["type"].is_string());
            }
            let answer = protocol.ask(&sim, "garbage", stream).await;
            assert!(std::str::from_utf8(&answer.body).is_err());
            let answer = protocol.ask(&sim, "wrong-type", stream).await;
            let kind = answer.header("content-type");
            assert_eq!(kind, Some("text/html; charset=utf-8"));
        }
        let whole = protocol.ask(&sim, "error-in-200", false).await;
        assert_eq!(whole.status, 200);
        assert!(whole.json()["error"]["message"].is_string());
        let events = protocol
            .ask(&sim, "error-in-200", true)
            .await
            .named_events();
        assert_eq!(names(&events), ["error"]);
        assert_eq!(protocol.ask(&sim, "empty-object", false).await.text(), "{}");
        let events = protocol
            .ask(&sim, "empty-object", true)
            .await
            .named_events();
        assert_eq!(events[0].1, json!({}));
        let swapped = protocol.ask(&sim, "wrong-type=swapped", true).await;
        assert!(swapped.json()["id"].is_string());
        let swapped = protocol.ask(&sim, "wrong-type=swapped", false).await;
        assert_eq!(protocol.answer_text(&swapped.named_events()), NUMBERS);
        let wrong = protocol.ask(&sim, "nonsense", false).await;
        assert!(wrong.status == 400 && wrong.text().contains("nonsense"));
    }
}

#[tokio::test]
async fn streams_fail_and_end_as_told() {
    let sim = start().await;
    for protocol in BOTH {
        for after in [0, 3] {
            let faults = format!("error-event={after}");
            let events = protocol.ask(&sim, &faults, true).await.named_events();
            assert_eq!(names(&events).last(), Some(&"error"));
            let content = names(&events)
                .iter()
                .filter(|name| **name == protocol.content())
                .count();
            assert_eq!(content, after, "{protocol:?}");
        }
        let answer = protocol.ask(&sim, "garbage-event=2", true).await;
        let broken = answer.text().split("\n\n").filter(|event| {
            let data = event.split_once("data: ").map(|(_, data)| data);
            data.is_some_and(|data| serde_json::from_str::<Value>(data).is_err())
        });
        assert_eq!(broken.count(), 1, "{protocol:?}");
        for (faults, last) in [
            ("no-done", ["response.output_item.done", "message_delta"]),
            (
                "no-finish",
                ["response.output_item.done", "content_block_stop"],
            ),
            ("failure-event=2", ["response.failed", "error"]),
            ("content-filter", ["response.incomplete", "message_stop"]),
            ("blocked", ["response.failed", "error"]),
            ("chunks=2", ["response.completed", "message_stop"]),
        ] {
            let events = protocol.ask(&sim, faults, true).await.named_events();
            let last = last[usize::from(protocol == Messages)];
            assert_eq!(names(&events).last(), Some(&last), "{protocol:?} {faults}");
        }
    }
    for (protocol, part) in [
        (Responses, "invalid_prompt"),
        (Messages, "content filtering policy"),
    ] {
        for stream in [false, true] {
            let answer = protocol.ask(&sim, "blocked", stream).await;
            assert_eq!(answer.status, if stream { 200 } else { 400 });
            assert!(answer.text().contains(part), "{protocol:?}");
        }
    }
    let failed = Responses.ask(&sim, "failure-event=2", false).await.json();
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"]["code"], "server_error");
    let events = Messages
        .ask(&sim, "error-event=1", true)
        .await
        .named_events();
    let error = &events.last().unwrap().1["error"];
    assert_eq!(error["type"], "overloaded_error");
    let events = Responses
        .ask(&sim, "error-event=1", true)
        .await
        .named_events();
    let (_, error) = events.last().unwrap();
    assert_eq!(error["sequence_number"], events.len() - 1);
    assert!(error["message"].is_string() && error.get("error").is_none());
}

#[tokio::test]
async fn text_and_figures_are_bent() {
    let sim = start().await;
    for protocol in BOTH {
        for stream in [false, true] {
            let answer = protocol.ask(&sim, "invalid-utf8", stream).await;
            assert!(std::str::from_utf8(&answer.body).is_err(), "{protocol:?}");
            let answer = protocol.ask(&sim, "no-usage", stream).await;
            assert!(!answer.text().contains("input_tokens"), "{protocol:?}");
        }
        let events = protocol.ask(&sim, "chunks=100", true).await.named_events();
        let content = names(&events)
            .iter()
            .filter(|name| **name == protocol.content())
            .count();
        assert_eq!(content, 100);
        assert_eq!(protocol.usage(&events)["output_tokens"], 100);
        let events = protocol.ask(&sim, "huge-event=300000", true).await;
        let longest = events
            .named_events()
            .iter()
            .map(|(_, data)| data.to_string().len())
            .max();
        assert!(longest > Some(300_000));
        for (faults, reported) in [
            ("usage=zero", json!(0)),
            ("usage=negative", json!(-5)),
            ("usage=string", json!("19")),
            ("usage=shrinking", json!(9)),
        ] {
            let whole = protocol.ask(&sim, faults, false).await.json();
            assert_eq!(
                whole["usage"]["output_tokens"], reported,
                "{protocol:?} {faults}"
            );
            let events = protocol.ask(&sim, faults, true).await.named_events();
            assert_eq!(
                protocol.usage(&events)["output_tokens"],
                reported,
                "{faults}"
            );
        }
    }
    let events = Messages
        .ask(&sim, "usage=on-finish", true)
        .await
        .named_events();
    assert_eq!(events[0].1["message"]["usage"]["input_tokens"], 0);
    let whole = Messages
        .ask(&sim, "cached=4+cache-write=3", false)
        .await
        .json();
    let usage = &whole["usage"];
    let reported = [
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ]
    .map(|name| usage[name].as_u64().unwrap());
    assert_eq!(reported, [3, 4, 3]);
    let whole = Responses
        .ask(&sim, "cached=4+cache-write=3", false)
        .await
        .json();
    let usage = &whole["usage"];
    assert_eq!(usage["input_tokens"], 10);
    let details = json!({"cached_tokens": 4, "cache_write_tokens": 3});
    assert_eq!(usage["input_tokens_details"], details);
}
