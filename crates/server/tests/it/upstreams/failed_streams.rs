//! Failures of upstreams in the middle of a stream: what the caller sees and what is charged.

use serde_json::{Value, json};

use crate::harness::{
    BodyEnd, Event, GatewayBuilder, Key, Request, TestGateway, ask, assert_openai_error, cost,
    expected_cost, with,
};

async fn with_short_timeouts() -> (TestGateway, Key) {
    GatewayBuilder::default()
        .setting("timeouts", "upstream_first_byte_ms = 1000")
        .setting("timeouts", "upstream_idle_ms = 1000")
        .funded()
        .await
}

/// The input tokens of a body when it is sent as a stream.
fn input_tokens(body: &Value) -> u64 {
    let body = with(body.clone(), &json!({ "stream": true }));
    let body = bytes::Bytes::from(body.to_string());
    let head = protocol::native::read_head(protocol::Dialect::Chat, &body).unwrap();
    head.input.tokens
}

fn text_of(events: &[Event]) -> String {
    let texts = events
        .iter()
        .filter(|event| !event.is_done())
        .map(Event::json);
    texts
        .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect()
}

/// S3, B3: before the first content, a failure is an ordinary error status and costs nothing.
#[tokio::test]
async fn a_stream_that_fails_before_content_is_a_plain_error() {
    let (gateway, key) = with_short_timeouts().await;
    let mut spent = 0;
    for (faults, status, code) in [
        ("status=400", 400, "upstream_rejected"),
        ("status=429", 503, "upstream_overloaded"),
        ("status=500", 502, "upstream_error"),
        ("hang=head", 504, "upstream_timeout"),
        ("hang=body", 504, "upstream_timeout"),
        ("reset=head", 502, "upstream_error"),
        ("reset=body", 502, "upstream_error"),
        ("cut=40", 502, "upstream_error"),
        ("truncate=body", 502, "upstream_error"),
        ("garbage", 502, "upstream_error"),
        ("wrong-type", 502, "upstream_error"),
        ("empty-object", 502, "upstream_error"),
        ("error-in-200", 502, "upstream_error"),
        ("error-event=0", 502, "upstream_error"),
        ("garbage-event=0", 502, "upstream_error"),
        ("endless-line", 502, "upstream_error"),
    ] {
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        let body = with(ask("reply with 30 words"), &json!({ "stream": true }));
        let answer = gateway.chat(&key, &body).await;
        assert_eq!(
            answer.failure(),
            (status, code.to_owned()),
            "{faults}: {}",
            answer.text()
        );
        assert_eq!(gateway.usage(&key).await, spent, "{faults}");
        assert_eq!(gateway.frozen(&key).await, 0, "{faults}");
        let answer = gateway.chat(&key, &ask("say exactly: fine")).await.ok();
        spent += expected_cost(&answer.json()["usage"]);
    }
    gateway.verify().await;
}

/// S2, B2: after content, a broken stream ends with the error event of its protocol, and no end mark is invented.
#[tokio::test]
async fn a_stream_that_breaks_after_content_ends_with_the_error_event() {
    let (gateway, key) = with_short_timeouts().await;
    let body = with(ask("reply with 30 words"), &json!({ "stream": true }));
    let input = input_tokens(&body);
    for (faults, code) in [
        ("hang=content", "upstream_timeout"),
        ("reset=content", "upstream_error"),
        ("cut=content", "upstream_error"),
        ("cut=1500", "upstream_error"),
        ("truncate=content", "upstream_error"),
        ("truncate=1777", "upstream_error"),
        ("garbage-event=1", "upstream_error"),
        ("garbage-event=5", "upstream_error"),
        ("error-event=1", "upstream_error"),
        ("error-event=9", "upstream_error"),
        ("no-done+no-usage", "upstream_error"),
        ("no-finish", "upstream_error"),
        ("invalid-utf8", "upstream_error"),
    ] {
        let before = gateway.usage(&key).await;
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        let mut stream = gateway.stream(&key, &body).await;
        assert_eq!(stream.head.status, 200, "{faults}");
        let (events, ended) = stream.rest().await;
        assert_eq!(ended, BodyEnd::Complete, "{faults}");
        let (last, before_it) = events.split_last().unwrap();
        let error = last.json();
        let members: Vec<_> = error.as_object().unwrap().keys().collect();
        assert_eq!(members, ["error"], "{faults}: {error}");
        assert_openai_error(&error["error"]);
        assert_eq!(error["error"]["code"], code, "{faults}");
        assert_eq!(last.name, None, "chat events have no name");
        assert!(before_it.iter().all(|event| !event.is_done()), "{faults}");
        let text = text_of(before_it);
        assert!(!text.is_empty(), "{faults}: content had come");
        let charge = gateway.usage(&key).await - before;
        let expected = cost(input, 0, protocol::count::tokens(text.as_bytes()));
        assert_eq!(charge, expected, "{faults}");
        assert_eq!(gateway.frozen(&key).await, 0, "{faults}");
    }
    gateway.verify().await;
}

/// S2: clients of Generate Content take a clean end for success, so the gateway cuts the connection. The error event
/// must arrive first, even if the whole stream arrives in one read.
#[tokio::test]
async fn a_broken_generate_stream_tells_its_error_before_it_is_cut() {
    let (gateway, key) = TestGateway::funded().await;
    let turn = json!({ "role": "user", "parts": [{ "text": "reply with 30 words" }] });
    let request = Request::post("/v1beta/models/maker/chat:streamGenerateContent?alt=sse")
        .bearer(&key.secret)
        .json(&json!({ "contents": [turn] }));
    for fault in ["error-event=3", "garbage-event=1", "cut=content"] {
        gateway.sim.queue_faults("sim-chat", fault, 1).unwrap();
        let answer = gateway.send(&request).await;
        let ended = (answer.status(), answer.ended);
        assert_eq!(
            ended,
            (200, BodyEnd::Truncated),
            "{fault}: {}",
            answer.text()
        );
        let last = answer.text().lines().rfind(|line| !line.is_empty());
        let last = last.and_then(|line| line.strip_prefix("data: ")).unwrap();
        let error: Value = serde_json::from_str(last).unwrap();
        assert!(error["error"]["status"].is_string(), "{fault}: {error}");
    }
    gateway.verify().await;
}

/// B1: usage that was reported is charged, even if the stream breaks afterwards.
#[tokio::test]
async fn usage_seen_before_the_break_is_what_is_charged() {
    let (gateway, key) = TestGateway::funded().await;
    let body = with(
        ask("reply with 30 words"),
        &json!({ "stream_options": { "include_usage": true } }),
    );
    gateway.sim.queue_faults("sim-chat", "no-done", 1).unwrap();
    let (events, _) = gateway.stream(&key, &body).await.rest().await;
    let (last, events) = events.split_last().unwrap();
    assert_eq!(last.json()["error"]["code"], "upstream_error");
    let usage = events.last().unwrap().json()["usage"].clone();
    assert!(usage.is_object());
    assert_eq!(gateway.usage(&key).await, expected_cost(&usage));
}

/// N6: invalid reports count as missing, and the last valid report is charged.
#[tokio::test]
async fn odd_reports_in_streams_are_read_as_the_rules_say() {
    let (gateway, key) = TestGateway::funded().await;
    let body = with(
        ask("reply with 30 words"),
        &json!({ "stream_options": { "include_usage": true } }),
    );
    let counted = cost(
        input_tokens(&body),
        0,
        protocol::count::tokens(thirty_words(&gateway, &key).await.as_bytes()),
    );
    let mut spent = gateway.usage(&key).await;
    for (faults, missing) in [
        ("no-usage", true),
        ("usage=negative", true),
        ("usage=string", true),
        ("usage=overflow", true),
        ("usage=shrinking", false),
        ("usage=running", false),
        ("usage=on-finish", false),
        ("usage=zero", true),
        ("slow-usage=100ms", false),
    ] {
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        let (events, ended) = gateway.stream(&key, &body).await.rest().await;
        assert_eq!(ended, BodyEnd::Complete);
        assert!(events.last().unwrap().is_done(), "{faults}");
        let now = gateway.usage(&key).await;
        let charge = now - spent;
        spent = now;
        if missing {
            assert_eq!(charge, counted, "{faults}");
            continue;
        }
        let reports = events
            .iter()
            .filter(|event| !event.is_done())
            .map(|event| event.json()["usage"].clone());
        let last = reports.rev().find(Value::is_object).unwrap();
        assert_eq!(charge, expected_cost(&last), "{faults}");
    }
    gateway.verify().await;
}

async fn thirty_words(gateway: &TestGateway, key: &Key) -> String {
    let answer = gateway
        .chat(key, &ask("reply with 30 words"))
        .await
        .ok()
        .json();
    answer["choices"][0]["message"]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn an_unasked_usage_chunk_does_not_reach_the_caller() {
    let (gateway, key) = TestGateway::funded().await;
    for faults in ["usage=unasked", "usage=running"] {
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        let (events, _) = gateway
            .stream(&key, &ask("reply with 5 words"))
            .await
            .rest()
            .await;
        assert!(events.last().unwrap().is_done());
        let empty = events
            .iter()
            .filter(|event| !event.is_done())
            .any(|event| event.json()["choices"] == json!([]));
        assert!(!empty, "{faults}");
    }
}

/// S5: a large event passes unchanged.
#[tokio::test]
async fn a_large_event_passes_unchanged() {
    let (gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "huge-event=3000000", 1)
        .unwrap();
    let (events, _) = gateway
        .stream(&key, &ask("say exactly: big"))
        .await
        .rest()
        .await;
    assert!(events.last().unwrap().is_done());
    let text = text_of(&events);
    assert_eq!(text.len(), 3_000_003);
    assert!(text.starts_with("big") && text.ends_with("xxx"));
}

/// S5: an event above the size limit breaks the stream.
#[tokio::test]
async fn an_oversized_event_ends_the_stream_with_an_error() {
    let (gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "huge-event=17000000", 1)
        .unwrap();
    let (events, ended) = gateway
        .stream(&key, &ask("say exactly: some words come first"))
        .await
        .rest()
        .await;
    assert_eq!(ended, BodyEnd::Complete);
    let (last, events) = events.split_last().unwrap();
    assert_eq!(last.json()["error"]["code"], "upstream_error");
    assert_eq!(text_of(events), "some words come first");
    assert!(gateway.usage(&key).await > 0);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

/// S2, B1, B2: a stream that is cut at many different positions.
#[tokio::test]
async fn a_stream_cut_at_every_13th_byte_is_never_told_as_finished() {
    let (gateway, key) = TestGateway::funded().await;
    let body = with(
        ask("say exactly: a b"),
        &json!({ "stream_options": { "include_usage": true } }),
    );
    let input = input_tokens(&body);
    let mut whole = gateway.stream(&key, &body).await;
    whole.rest().await;
    let length = whole.raw.len();
    let mut statuses = [0; 2];
    for at in (0..length).step_by(13) {
        let before = gateway.usage(&key).await;
        gateway
            .sim
            .queue_faults("sim-chat", &format!("cut={at}"), 1)
            .unwrap();
        let mut stream = gateway.stream(&key, &body).await;
        let status = stream.head.status;
        if status == 502 {
            statuses[0] += 1;
            assert_eq!(gateway.usage(&key).await, before, "cut at {at}");
            continue;
        }
        statuses[1] += 1;
        assert_eq!(status, 200);
        let (events, _) = stream.rest().await;
        let last = events.last().unwrap();
        let charge = gateway.usage(&key).await - before;
        if last.is_done() {
            // The end mark has arrived; only bytes after it were cut off.
            assert!(at + 20 > length, "cut at {at} of {length}");
            continue;
        }
        assert_eq!(
            last.json()["error"]["code"],
            "upstream_error",
            "cut at {at}"
        );
        let usage = events
            .iter()
            .map(|event| event.json()["usage"].clone())
            .find(Value::is_object);
        let expected = match usage {
            Some(usage) => expected_cost(&usage),
            None => cost(
                input,
                0,
                protocol::count::tokens(text_of(&events).as_bytes()),
            ),
        };
        assert_eq!(charge, expected, "cut at {at}");
    }
    assert!(statuses.iter().all(|count| *count > 5), "{statuses:?}");
    gateway.verify().await;
}
