//! Creates the spans of a call: one for the call itself and, below it, one for each attempt on a route.
//!
//! Names follow the conventions of OpenTelemetry for generative AI, HTTP and errors. Attributes without a conventional
//! name begin with `tollgate.`. Only the span of the call has token counts, so that sums over all spans do not count
//! them twice.

use std::time::Duration;

use ledger::Meter;

use super::call_trace::AttemptTrace;
use super::finished_call::FinishedCall;
use super::otlp::{
    Attribute, Event, Int64Text, Resource, ResourceSpans, Scope, ScopeSpans, Span, SpanKind,
    Status, TraceRequest,
};

pub(super) fn request<'a>(
    resource: Vec<Attribute<'a>>,
    calls: &'a [FinishedCall],
) -> TraceRequest<'a> {
    let spans = calls.iter().flat_map(spans_of).collect();
    TraceRequest {
        resource_spans: [ResourceSpans {
            resource: Resource {
                attributes: resource,
            },
            scope_spans: [ScopeSpans {
                scope: Scope::OURS,
                spans,
            }],
        }],
    }
}

fn spans_of(call: &FinishedCall) -> Vec<Span<'_>> {
    let times = Times::of(call);
    let attempts = &call.trace.attempts;
    let mut spans = Vec::with_capacity(attempts.len() + 1);
    spans.push(call_span(call, times));
    spans.extend(attempts.iter().map(|it| attempt_span(call, it, times)));
    spans
}

/// The start and the end of a call, in wall-clock nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    began: u64,
    ended: u64,
}

impl Times {
    /// The row contains the end. The start is computed from the monotonic duration, because the wall clock may have
    /// been set in the meantime.
    fn of(call: &FinishedCall) -> Self {
        let ended = u64::try_from(call.ended_at.get()).unwrap_or(0);
        let ended = ended.saturating_mul(1_000_000);
        let lasted = call.timings.total_us.saturating_mul(1_000);
        Self {
            began: ended.saturating_sub(lasted),
            ended,
        }
    }

    /// The time `after_us` microseconds after the arrival, but never after the end.
    fn at(self, after_us: u64) -> Int64Text<u64> {
        let after = after_us.saturating_mul(1_000);
        Int64Text(self.began.saturating_add(after).min(self.ended))
    }
}

fn call_span(call: &FinishedCall, times: Times) -> Span<'_> {
    let context = &call.trace.context;
    let operation = operation(&call.endpoint);
    let named = call.trace.named_model.as_ref().unwrap_or(&call.model);
    Span {
        trace_id: context.trace,
        id: context.span,
        parent_span_id: context.parent,
        name: span_name(operation, named),
        kind: SpanKind::Server,
        start_time_unix_nano: Int64Text(times.began),
        end_time_unix_nano: Int64Text(times.ended),
        attributes: call_attributes(call, operation, named),
        events: call_events(call, times),
        // A refusal is an error of the caller, not ours.
        status: if call.status >= 500 {
            Status::ERROR
        } else {
            Status::UNSET
        },
    }
}

/// The status that the caller got. If a stream began and then failed, its row has the status of the failure instead.
fn response_status(call: &FinishedCall) -> u16 {
    let has_begun = call.is_streamed && call.timings.first_byte_us.is_some();
    if has_begun { 200 } else { call.status }
}

/// `chat maker/model`, or only the operation if the request names no model.
fn span_name(operation: &str, model: &str) -> String {
    if model.is_empty() {
        return operation.to_owned();
    }
    format!("{operation} {model}")
}

fn call_attributes<'a>(
    call: &'a FinishedCall,
    operation: &'static str,
    named: &'a str,
) -> Vec<Attribute<'a>> {
    let mut attributes = vec![
        Attribute::text("gen_ai.operation.name", operation),
        Attribute::text("http.route", &*call.endpoint),
        Attribute::int("http.response.status_code", response_status(call).into()),
        Attribute::text("tollgate.request_id", call.request_id.as_str()),
    ];
    if !named.is_empty() {
        attributes.push(Attribute::text("gen_ai.request.model", named));
        attributes.push(Attribute::flag("gen_ai.request.stream", call.is_streamed));
    }
    if call.trace.named_model.is_some() {
        attributes.push(Attribute::text("tollgate.fallback_model", &*call.model));
    }
    // The last attempt is the one that answered or that made the call fail.
    if let Some(last) = call.trace.attempts.last() {
        attributes.push(Attribute::text("gen_ai.provider.name", last.provider));
    }
    if let Some(channel) = &call.channel {
        attributes.push(Attribute::text("tollgate.channel", &**channel));
    }
    if let Some(code) = &call.code {
        attributes.push(Attribute::text("error.type", &**code));
    } else if let Some(model) = &call.upstream_model {
        attributes.push(Attribute::text("gen_ai.response.model", &**model));
    }
    if let Some(first) = call.timings.first_byte_us.filter(|_| call.is_streamed) {
        let seconds = Duration::from_micros(first).as_secs_f64();
        let key = "gen_ai.response.time_to_first_chunk";
        attributes.push(Attribute::double(key, seconds));
    }
    // Stored meters may come from other versions and be unreadable, but this one was computed here.
    if let Some(meter) = call.meter.as_ref().and_then(|meter| meter.read().ok()) {
        add_usage(&meter, &mut attributes);
    }
    if let Some(end) = &call.hold_end {
        attributes.push(Attribute::text("tollgate.hold_end", &**end));
        let key = "tollgate.charge_micro_credits";
        attributes.push(Attribute::int(key, call.charge.get()));
    }
    if let Some(cost) = call.cost {
        attributes.push(Attribute::int("tollgate.cost_micro_credits", cost.get()));
    }
    if let Some(wallet) = call.wallet {
        attributes.push(Attribute::text("tollgate.wallet", wallet.to_string()));
    }
    if let Some(key) = call.key {
        attributes.push(Attribute::text("tollgate.key", key.to_string()));
    }
    if call.trace.attempts_left_out > 0 {
        let count = call.trace.attempts_left_out;
        attributes.push(Attribute::count("tollgate.attempts_left_out", count));
    }
    attributes
}

/// The token counts, if the call is billed by tokens. Cached tokens are part of the input.
fn add_usage(meter: &Meter, attributes: &mut Vec<Attribute<'_>>) {
    let (input, output) = (meter.input_total(), meter.output_total());
    if input == 0 && output == 0 {
        return;
    }
    attributes.push(Attribute::count("gen_ai.usage.input_tokens", input));
    attributes.push(Attribute::count("gen_ai.usage.output_tokens", output));
    let written = meter.cache_write.saturating_add(meter.cache_write_1h);
    for (key, count) in [
        ("gen_ai.usage.cache_read.input_tokens", meter.cached_input),
        ("gen_ai.usage.cache_creation.input_tokens", written),
    ] {
        if count > 0 {
            attributes.push(Attribute::count(key, count));
        }
    }
}

/// Events for the stages of the call and for routes that were not tried.
fn call_events(call: &FinishedCall, times: Times) -> Vec<Event<'_>> {
    let stages = [
        ("tollgate.admitted", call.timings.admitted_us),
        ("tollgate.upstream_answered", call.timings.upstream_us),
        ("tollgate.first_byte", call.timings.first_byte_us),
    ];
    let stages = stages.into_iter().filter_map(|(name, at)| {
        Some(Event {
            time_unix_nano: times.at(at?),
            name,
            attributes: Vec::new(),
        })
    });
    let passed_over = call.trace.passed_over.iter().map(|it| Event {
        time_unix_nano: times.at(it.at_us),
        name: "tollgate.route_passed_over",
        attributes: vec![
            Attribute::text("tollgate.channel", &*it.channel),
            Attribute::text("tollgate.reason", &*it.reason),
        ],
    });
    stages.chain(passed_over).collect()
}

fn attempt_span<'a>(call: &'a FinishedCall, attempt: &'a AttemptTrace, times: Times) -> Span<'a> {
    let context = &call.trace.context;
    let operation = operation(&call.endpoint);
    let mut attributes = vec![
        Attribute::text("gen_ai.operation.name", operation),
        Attribute::text("gen_ai.provider.name", attempt.provider),
        Attribute::text("gen_ai.request.model", &*attempt.model),
        Attribute::text("tollgate.channel", &*attempt.channel),
    ];
    if let Some(failed) = &attempt.failed {
        attributes.push(Attribute::text("error.type", failed.code));
    }
    let ended = match &attempt.failed {
        Some(failed) => times.at(failed.at_us),
        None => Int64Text(times.ended),
    };
    Span {
        trace_id: context.trace,
        id: attempt.span,
        parent_span_id: Some(context.span),
        name: span_name(operation, &attempt.model),
        kind: SpanKind::Client,
        start_time_unix_nano: times.at(attempt.began_us),
        end_time_unix_nano: ended,
        attributes,
        events: Vec::new(),
        status: if attempt.failed.is_some() {
            Status::ERROR
        } else {
            Status::UNSET
        },
    }
}

/// The operation of an endpoint. `generate_content` is the conventional name for media of every kind.
fn operation(endpoint: &str) -> &'static str {
    let ends_with = |ends: &[&str]| ends.iter().any(|end| endpoint.ends_with(end));
    if ends_with(&[
        "/chat/completions",
        "/responses",
        "/messages",
        "/interactions",
    ]) {
        "chat"
    } else if endpoint.contains("mbed") {
        "embeddings"
    } else if ends_with(&["/count_tokens", "/input_tokens", ":countTokens"]) {
        "count_tokens"
    } else if endpoint.contains("/stt") || endpoint.ends_with("/transcriptions") {
        "transcribe"
    } else if endpoint.contains("/voices") {
        "list_voices"
    } else if endpoint.ends_with("/realtime") {
        "realtime"
    } else {
        "generate_content"
    }
}

#[cfg(test)]
mod tests;
