//! Tests of the spans of a call, in the form in which a collector receives them.

use std::sync::Arc;

use ledger::{Micro, UnixMs};
use serde_json::{Value, json};
use store::{JournalRow, MeterText, Timings};

use super::*;
use crate::telemetry::call_trace::{CallTrace, FailedAttempt, PassedOver};
use crate::telemetry::trace_context::{SampleRatio, SpanId, TraceContext, Traceparent};

const PARENT: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn attempt(channel: &str, began_us: u64, failed: Option<FailedAttempt>) -> AttemptTrace {
    AttemptTrace {
        span: SpanId::fresh(),
        channel: channel.into(),
        provider: "openai",
        model: "gpt-large-2026".into(),
        began_us,
        failed,
    }
}

fn trace() -> CallTrace {
    let parent = Traceparent::read(PARENT).unwrap();
    let context = TraceContext::begin(Some(&parent), SampleRatio::ALL).unwrap();
    CallTrace::new(context)
}

/// A row that contains everything that must not be exported.
fn row() -> JournalRow {
    JournalRow {
        at: UnixMs::new(1_800_000_000_500),
        request_id: "req_1".into(),
        endpoint: "/v1/chat/completions".into(),
        model: "openai/gpt-large".into(),
        channel: Some("second".into()),
        upstream_model: Some("gpt-large-2026".into()),
        status: 200,
        stream: true,
        outcome: Some("settled".into()),
        meter: Some(MeterText::from(&Meter {
            input: 10,
            cached_input: 5,
            cache_write: 2,
            output: 7,
            ..Meter::default()
        })),
        charge: Micro::new(1_234),
        cost: Some(Micro::new(999)),
        timings: Timings {
            admitted_us: Some(100),
            queued_us: Some(50),
            upstream_us: Some(300_000),
            first_byte_us: Some(400_000),
            total_us: 500_000,
        },
        dropped_params: Some("secret-member".into()),
        route_notes: Some("first: upstream_error (secret-cause)".into()),
        request_body: Some("secret-question".into()),
        response_body: Some("secret-answer".into()),
        ..JournalRow::default()
    }
}

fn exported_spans(trace: CallTrace, row: &JournalRow) -> Vec<Value> {
    let call = FinishedCall::new(Box::new(trace), row);
    let calls = [call];
    let body = request(vec![Attribute::text("service.name", "gate")], &calls);
    let body = serde_json::to_string(&body).unwrap();
    assert!(!body.contains("secret"), "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    let resource = &body["resourceSpans"][0];
    let name = json!([{ "key": "service.name", "value": { "stringValue": "gate" } }]);
    assert_eq!(resource["resource"]["attributes"], name);
    let scope = &resource["scopeSpans"][0];
    assert_eq!(scope["scope"]["name"], "tollgate");
    scope["spans"].as_array().unwrap().clone()
}

fn value(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap();
    let mut values = attributes.iter().filter(|it| it["key"] == key);
    let found = values.next().map_or(Value::Null, |it| it["value"].clone());
    assert!(values.next().is_none(), "{key} is told twice");
    found
}

/// A call that passed over the route `third`, failed on `first` and was served by `second`.
fn second_try() -> CallTrace {
    let mut trace = trace();
    let failed = FailedAttempt {
        at_us: 200_000,
        code: "upstream_error",
    };
    trace.attempts.push(attempt("first", 1_000, Some(failed)));
    trace.attempts.push(attempt("second", 200_500, None));
    trace.passed_over.push(PassedOver {
        channel: "third".into(),
        reason: "requests per minute".into(),
        at_us: 900,
    });
    trace
}

#[test]
fn a_call_is_a_span_with_the_names_of_the_conventions() {
    let spans = exported_spans(second_try(), &row());
    let call = &spans[0];
    assert_eq!(call["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(call["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(call["name"], "chat openai/gpt-large");
    assert_eq!(call["kind"], 2);
    assert_eq!(call["startTimeUnixNano"], "1800000000000000000");
    assert_eq!(call["endTimeUnixNano"], "1800000000500000000");
    assert_eq!(call.get("status"), None);
    for (key, wanted) in [
        ("gen_ai.operation.name", json!({ "stringValue": "chat" })),
        ("gen_ai.provider.name", json!({ "stringValue": "openai" })),
        (
            "gen_ai.request.model",
            json!({ "stringValue": "openai/gpt-large" }),
        ),
        (
            "gen_ai.response.model",
            json!({ "stringValue": "gpt-large-2026" }),
        ),
        ("gen_ai.request.stream", json!({ "boolValue": true })),
        (
            "gen_ai.response.time_to_first_chunk",
            json!({ "doubleValue": 0.4 }),
        ),
        ("gen_ai.usage.input_tokens", json!({ "intValue": "17" })),
        ("gen_ai.usage.output_tokens", json!({ "intValue": "7" })),
        (
            "gen_ai.usage.cache_read.input_tokens",
            json!({ "intValue": "5" }),
        ),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            json!({ "intValue": "2" }),
        ),
        (
            "http.route",
            json!({ "stringValue": "/v1/chat/completions" }),
        ),
        ("http.response.status_code", json!({ "intValue": "200" })),
        ("tollgate.request_id", json!({ "stringValue": "req_1" })),
        ("tollgate.channel", json!({ "stringValue": "second" })),
        ("tollgate.hold_end", json!({ "stringValue": "settled" })),
        (
            "tollgate.charge_micro_credits",
            json!({ "intValue": "1234" }),
        ),
        ("tollgate.cost_micro_credits", json!({ "intValue": "999" })),
        ("error.type", Value::Null),
    ] {
        assert_eq!(value(call, key), wanted, "{key}");
    }
    let events: Vec<_> = call["events"].as_array().unwrap().iter().collect();
    let names: Vec<_> = events
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "tollgate.admitted",
            "tollgate.upstream_answered",
            "tollgate.first_byte",
            "tollgate.route_passed_over"
        ]
    );
    assert_eq!(events[0]["timeUnixNano"], "1800000000000100000");
    assert_eq!(
        value(events[3], "tollgate.channel"),
        json!({ "stringValue": "third" })
    );
}

#[test]
fn attempts_are_spans_below_their_call() {
    let spans = exported_spans(second_try(), &row());
    let [call, first, second] = spans.as_slice() else {
        panic!("{spans:?}");
    };
    for (span, channel, began, ended) in [
        (first, "first", "1800000000001000000", "1800000000200000000"),
        (
            second,
            "second",
            "1800000000200500000",
            "1800000000500000000",
        ),
    ] {
        assert_eq!(span["traceId"], call["traceId"]);
        assert_eq!(span["parentSpanId"], call["spanId"]);
        assert_ne!(span["spanId"], call["spanId"]);
        assert_eq!(span["name"], "chat gpt-large-2026");
        assert_eq!(span["kind"], 3);
        assert_eq!(span["startTimeUnixNano"], began);
        assert_eq!(span["endTimeUnixNano"], ended);
        assert_eq!(
            value(span, "tollgate.channel"),
            json!({ "stringValue": channel })
        );
        assert_eq!(value(span, "gen_ai.usage.input_tokens"), Value::Null);
    }
    assert_eq!(first["status"], json!({ "code": 2 }));
    assert_eq!(
        value(first, "error.type"),
        json!({ "stringValue": "upstream_error" })
    );
    assert_eq!(second.get("status"), None);
    assert_eq!(value(second, "error.type"), Value::Null);
}

#[test]
fn failures_are_told_as_the_caller_saw_them() {
    for (status, code, is_error) in [
        (502, Some("upstream_error"), true),
        (402, Some("insufficient_quota"), false),
        (499, Some("client_gone"), false),
        (200, None, false),
    ] {
        let row = JournalRow {
            status,
            code: code.map(Into::into),
            ..row()
        };
        let spans = exported_spans(trace(), &row);
        let [call] = spans.as_slice() else {
            panic!("{spans:?}")
        };
        let wanted = code.map_or(Value::Null, |code| json!({ "stringValue": code }));
        assert_eq!(value(call, "error.type"), wanted);
        assert_eq!(call.get("status").is_some(), is_error, "{status}");
        assert_eq!(value(call, "gen_ai.provider.name"), Value::Null);
        let has_answer = value(call, "gen_ai.response.model") != Value::Null;
        assert_eq!(has_answer, code.is_none());
    }
}

#[test]
fn a_stream_that_broke_has_the_status_that_its_caller_got_and_is_an_error() {
    let broken = JournalRow {
        status: 502,
        code: Some("upstream_error".into()),
        ..row()
    };
    let not_begun = JournalRow {
        timings: Timings {
            first_byte_us: None,
            ..broken.timings
        },
        ..broken.clone()
    };
    let whole = JournalRow {
        stream: false,
        ..broken.clone()
    };
    for (row, status) in [(broken, "200"), (not_begun, "502"), (whole, "502")] {
        let call = exported_spans(trace(), &row).remove(0);
        let found = value(&call, "http.response.status_code");
        assert_eq!(found, json!({ "intValue": status }));
        assert_eq!(call["status"], json!({ "code": 2 }));
    }
}

#[test]
fn a_call_that_was_refused_at_once_says_little() {
    let row = JournalRow {
        at: UnixMs::new(5),
        status: 400,
        code: Some("invalid_request".into()),
        endpoint: "/v1/images/generations".into(),
        timings: Timings {
            total_us: 9_000_000,
            ..Timings::default()
        },
        ..JournalRow::default()
    };
    let spans = exported_spans(trace(), &row);
    assert_eq!(spans[0]["name"], "generate_content");
    assert_eq!(spans[0].get("events"), None);
    // The wall clock is at the epoch. The start would be before it, so it is clamped to zero.
    assert_eq!(spans[0]["startTimeUnixNano"], "0");
    for key in [
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
        "tollgate.hold_end",
        "tollgate.wallet",
    ] {
        assert_eq!(value(&spans[0], key), Value::Null, "{key}");
    }
}

#[test]
fn the_model_that_was_named_is_the_one_that_was_asked_for() {
    let mut trace = trace();
    trace.answered_by_another(Arc::from("maker/named"));
    let spans = exported_spans(trace, &row());
    let text = |key: &str| value(&spans[0], key)["stringValue"].clone();
    assert_eq!(spans[0]["name"], "chat maker/named");
    assert_eq!(text("gen_ai.request.model"), "maker/named");
    assert_eq!(text("tollgate.fallback_model"), "openai/gpt-large");
}

#[test]
fn every_endpoint_has_an_operation() {
    for (endpoint, wanted) in [
        ("/v1/chat/completions", "chat"),
        ("/v1/responses", "chat"),
        ("/v1/messages", "chat"),
        ("/v1beta/interactions", "chat"),
        ("/v1beta/models/{id}:generateContent", "generate_content"),
        ("/v1/embeddings", "embeddings"),
        ("/v1beta/models/{id}:embedContent", "embeddings"),
        ("/v1beta/models/{id}:batchEmbedContents", "embeddings"),
        ("/v1/messages/count_tokens", "count_tokens"),
        ("/v1/responses/input_tokens", "count_tokens"),
        ("/v1beta/models/{id}:countTokens", "count_tokens"),
        ("/v1/images/edits", "generate_content"),
        ("/v1/videos/generations", "generate_content"),
        ("/v1/tts", "generate_content"),
        ("/v1/tts (socket)", "generate_content"),
        ("/v1/tts/voices/{voice_id}", "list_voices"),
        ("/v1/stt", "transcribe"),
        ("/v1/stt (socket)", "transcribe"),
        ("/v1/audio/transcriptions", "transcribe"),
        ("/v1/realtime", "realtime"),
    ] {
        assert_eq!(operation(endpoint), wanted, "{endpoint}");
    }
}
