//! Tests scripts over real sockets: delays, breaks, substitutes, changed events.

use crate::client::{Answer, Ended, chat, get, post, start};
use serde_json::{Value, json};
use sim::{CallEnd, Sim};
use std::time::{Duration, Instant};

fn request(faults: &str, stream: bool) -> Value {
    json!({"model": format!("sim-chat+{faults}"), "stream": stream,
           "stream_options": if stream { json!({"include_usage": true}) } else { Value::Null },
           "messages": [{"role": "user", "content": "Count to 20"}]})
}

async fn faulty(sim: &Sim, faults: &str, stream: bool) -> Answer {
    chat(sim, &request(faults, stream)).await
}

#[tokio::test]
async fn answers_break_off_at_the_byte() {
    let sim = start().await;
    for stream in [false, true] {
        for (faults, bytes, ended) in [
            ("cut=100", 100, Ended::Closed),
            ("reset=100", 100, Ended::Reset),
            ("reset=body", 0, Ended::Reset),
            ("cut=body", 0, Ended::Closed),
            ("truncate=100", 100, Ended::Whole),
            ("pieces=7+cut=100", 100, Ended::Closed),
        ] {
            let answer = faulty(&sim, faults, stream).await;
            assert_eq!(
                (answer.status, answer.body.len(), answer.ended),
                (200, bytes, ended),
                "{faults} {stream}"
            );
        }
        for (faults, ended) in [("cut=head", Ended::Closed), ("reset=head", Ended::Reset)] {
            let answer = faulty(&sim, faults, stream).await;
            assert_eq!((answer.status, answer.ended), (0, ended), "{faults}");
        }
    }
    let ends: Vec<_> = sim.calls().iter().map(|call| call.end).collect();
    assert_eq!(
        ends[..5],
        [
            CallEnd::Cut,
            CallEnd::Reset,
            CallEnd::Reset,
            CallEnd::Cut,
            CallEnd::Completed
        ]
    );
}

#[tokio::test]
async fn a_break_after_the_content_leaves_one_content_event() {
    let sim = start().await;
    let answer = faulty(&sim, "cut=content", true).await;
    assert_eq!((answer.events().len(), answer.ended), (2, Ended::Closed));
}

#[tokio::test(start_paused = true)]
async fn waits_are_kept() {
    let sim = start().await;
    for (faults, wait_ms) in [
        ("delay=300s", 300_000),
        ("first-byte=200s", 200_000),
        ("chunk-delay=1s", 20_000),
        ("slow-usage=100s", 100_000),
    ] {
        let begun = tokio::time::Instant::now();
        let answer = faulty(&sim, faults, true).await;
        assert_eq!(answer.ended, Ended::Whole);
        assert!(
            begun.elapsed() >= Duration::from_millis(wait_ms),
            "{faults}"
        );
    }
}

#[tokio::test]
async fn a_hanging_call_ends_when_the_caller_goes() {
    let sim = start().await;
    for faults in ["hang=head", "hang=body", "hang=content", "hang=50"] {
        sim.forget_calls();
        let call = tokio::time::timeout(Duration::from_millis(50), faulty(&sim, faults, true));
        assert!(call.await.is_err(), "{faults}");
        let calls = sim.calls_until(|calls| {
            !calls.is_empty() && calls.iter().all(|call| call.end != CallEnd::Open)
        });
        let calls = tokio::time::timeout(Duration::from_secs(5), calls)
            .await
            .unwrap();
        assert_eq!(calls[0].end, CallEnd::Cancelled, "{faults}");
    }
}

#[tokio::test]
async fn substitutes_are_sent() {
    let sim = start().await;
    let answer = faulty(&sim, "status=429:retry-after=7", false).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("7"))
    );
    assert_eq!(answer.json()["error"]["code"], "rate_limit_exceeded");
    for status in [400, 401, 402, 403, 404, 408, 413, 422, 500, 502, 503, 529] {
        let answer = faulty(&sim, &format!("status={status}"), true).await;
        assert_eq!(answer.status, status);
        assert!(answer.json()["error"]["message"].is_string());
    }
    let answer = faulty(&sim, "error-in-200", false).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["type"]),
        (200, &json!("server_error"))
    );
    let answer = faulty(&sim, "error-in-200", true).await;
    assert_eq!(answer.chunk_values()[0]["error"]["type"], "server_error");
    for stream in [false, true] {
        let answer = faulty(&sim, "garbage", stream).await;
        assert!(std::str::from_utf8(&answer.body).is_err());
        let answer = faulty(&sim, "wrong-type", stream).await;
        assert_eq!(
            answer.header("content-type"),
            Some("text/html; charset=utf-8")
        );
    }
    assert_eq!(faulty(&sim, "empty-object", false).await.text(), "{}");
    assert_eq!(
        faulty(&sim, "empty-object", true).await.text(),
        "data: {}\n\ndata: [DONE]\n\n"
    );
    assert_eq!(
        faulty(&sim, "wrong-type=swapped", true).await.json()["object"],
        "chat.completion"
    );
    assert!(
        faulty(&sim, "wrong-type=swapped", false)
            .await
            .events()
            .len()
            > 3
    );
}

#[tokio::test]
async fn events_are_bent() {
    let sim = start().await;
    let answer = faulty(&sim, "error-event=3", true).await;
    let chunks = answer.chunk_values();
    assert_eq!(chunks.len(), 1 + 3 + 1);
    assert!(chunks[4]["error"].is_object());
    assert!(!answer.text().contains("[DONE]"));

    let answer = faulty(&sim, "garbage-event=2", true).await;
    assert!(serde_json::from_str::<Value>(&answer.events()[3]).is_err());
    assert_eq!(answer.events().last().unwrap(), "[DONE]");

    assert!(
        !faulty(&sim, "no-done", true)
            .await
            .text()
            .contains("[DONE]")
    );
    assert!(
        !faulty(&sim, "no-finish", true)
            .await
            .text()
            .contains("\"stop\"")
    );

    for stream in [false, true] {
        let answer = faulty(&sim, "invalid-utf8", stream).await;
        assert!(std::str::from_utf8(&answer.body).is_err());
    }
    let answer = faulty(&sim, "huge-event=300000", true).await;
    let longest = answer.events().iter().map(String::len).max();
    assert!(longest > Some(300_000) && longest < Some(301_000));
}

#[tokio::test]
async fn usage_is_bent() {
    let sim = start().await;
    for stream in [false, true] {
        let answer = faulty(&sim, "no-usage", stream).await;
        assert!(!answer.text().contains("prompt_tokens"), "{stream}");
    }
    for (faults, total) in [
        ("usage=zero", json!(0)),
        ("usage=negative", json!(-5)),
        ("usage=string", json!("49")),
    ] {
        let whole = faulty(&sim, faults, false).await.json();
        assert_eq!(whole["usage"]["total_tokens"], total, "{faults}");
        let chunks = faulty(&sim, faults, true).await.chunk_values();
        assert_eq!(
            chunks.last().unwrap()["usage"]["total_tokens"],
            total,
            "{faults}"
        );
    }
    let chunks = faulty(&sim, "usage=shrinking", true).await.chunk_values();
    let reported: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| chunk["usage"]["completion_tokens"].as_u64())
        .collect();
    assert!(
        reported.len() > 10 && reported.last() < reported.get(reported.len() - 2),
        "{reported:?}"
    );
    let chunks = faulty(&sim, "usage=on-finish", true).await.chunk_values();
    let last = chunks.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["usage"]["total_tokens"], 49);
    let mut twice = request("usage=on-finish", true);
    twice["n"] = json!(2);
    let chunks = chat(&sim, &twice).await.chunk_values();
    assert_eq!(
        chunks
            .iter()
            .filter(|chunk| chunk["usage"].is_object())
            .count(),
        1
    );

    let mut unasked = request("usage=unasked", true);
    unasked["stream_options"] = Value::Null;
    let chunks = chat(&sim, &unasked).await.chunk_values();
    assert!(chunks.last().unwrap()["usage"].is_object());
}

#[tokio::test]
async fn the_text_is_steered() {
    let sim = start().await;
    let chunks = faulty(&sim, "chunks=100", true).await.chunk_values();
    let content = chunks.iter().filter(|chunk| {
        chunk["choices"][0]["delta"]["content"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    });
    assert_eq!(content.count(), 100);
    assert_eq!(chunks.last().unwrap()["usage"]["completion_tokens"], 100);
    let whole = faulty(&sim, "reply-bytes=1000000", false).await.json();
    assert_eq!(
        whole["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .len(),
        1_000_000
    );
    let whole = faulty(&sim, "cached=4+cache-write=3", false).await.json();
    assert_eq!(
        whole["usage"]["prompt_tokens_details"],
        json!({"cached_tokens": 4, "cache_write_tokens": 3, "audio_tokens": 0})
    );
    let whole = faulty(&sim, "content-filter", false).await.json();
    assert_eq!(whole["choices"][0]["finish_reason"], "content_filter");
    let whole = faulty(&sim, "refuse", false).await.json();
    assert_eq!(whole["choices"][0]["message"]["content"], Value::Null);
    assert!(whole["choices"][0]["message"]["refusal"].is_string());
}

#[tokio::test]
async fn pieces_change_nothing_but_the_writes() {
    let sim = start().await;
    let whole = faulty(&sim, "chunks=3", true).await;
    let pieces = faulty(&sim, "chunks=3+pieces=1", true).await;
    assert_eq!(pieces.chunks, pieces.body.len());
    assert!(whole.chunks < 10);
    let contents = |answer: &Answer| {
        let chunks = answer.chunk_values();
        chunks
            .iter()
            .map(|chunk| chunk["choices"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(contents(&whole), contents(&pieces));
}

#[tokio::test]
async fn queued_faults_hit_the_next_calls() {
    let sim = start().await;
    let order = json!({"model": "sim-chat", "faults": "status=503", "times": 2}).to_string();
    assert_eq!(post(&sim, "/_sim/faults", &order).await.status, 200);
    assert_eq!(
        get(&sim, "/_sim/faults").await.json()["faults"][0]["times"],
        2
    );
    let plain = json!({"model": "sim-chat", "messages": [{"role": "user", "content": "hi"}]});
    let other = json!({"model": "sim-mini", "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(chat(&sim, &other).await.status, 200);
    for status in [503, 503, 200] {
        assert_eq!(chat(&sim, &plain).await.status, status);
    }
    sim.queue_faults("*", "status=500", 1).unwrap();
    assert_eq!(chat(&sim, &other).await.status, 500);
    for order in ["{}", r#"{"model":"m","faults":"nonsense"}"#, "nonsense"] {
        assert_eq!(
            post(&sim, "/_sim/faults", order).await.status,
            400,
            "{order}"
        );
    }
    let wrong = faulty(&sim, "nonsense", false).await;
    assert_eq!(
        (wrong.status, &wrong.json()["error"]["code"]),
        (400, &json!("sim_bad_script"))
    );
}

#[tokio::test]
async fn a_long_stream_is_made_while_it_is_read() {
    let sim = start().await;
    let begun = Instant::now();
    let answer = faulty(&sim, "reply-bytes=2000000+chunks=20000", true).await;
    assert_eq!(answer.chunk_values().len(), 20_000 + 3);
    assert!(begun.elapsed() < Duration::from_secs(30));
}
