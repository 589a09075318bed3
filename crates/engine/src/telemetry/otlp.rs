//! The JSON form of OTLP: resources, scopes, spans and attributes.
//!
//! As OTLP/JSON requires, 64-bit numbers are strings, ids are hexadecimal, and enums are numbers.

use std::borrow::Cow;
use std::fmt::Display;

use serde::{Serialize, Serializer};

use super::trace_context::{SpanId, TraceId};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TraceRequest<'a> {
    pub(super) resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceSpans<'a> {
    pub(super) resource: Resource<'a>,
    pub(super) scope_spans: [ScopeSpans<'a>; 1],
}

/// The node that sends the telemetry.
#[derive(Debug, Serialize)]
pub(super) struct Resource<'a> {
    pub(super) attributes: Vec<Attribute<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct ScopeSpans<'a> {
    pub(super) scope: Scope,
    pub(super) spans: Vec<Span<'a>>,
}

/// The part of a program that recorded the data.
#[derive(Debug, Serialize)]
pub(super) struct Scope {
    name: &'static str,
    version: &'static str,
}

impl Scope {
    pub(super) const OURS: Self = Self {
        name: "tollgate",
        version: env!("CARGO_PKG_VERSION"),
    };
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span<'a> {
    pub(super) trace_id: TraceId,
    #[serde(rename = "spanId")]
    pub(super) id: SpanId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_span_id: Option<SpanId>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) start_time_unix_nano: Int64Text<u64>,
    pub(super) end_time_unix_nano: Int64Text<u64>,
    pub(super) attributes: Vec<Attribute<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Event<'a>>,
    #[serde(skip_serializing_if = "Status::is_unset")]
    pub(super) status: Status,
}

/// The role of a span in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Server = 2,
    Client = 3,
}

impl Serialize for SpanKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(*self as u8)
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    pub(super) time_unix_nano: Int64Text<u64>,
    pub(super) name: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<Attribute<'a>>,
}

/// Whether a span failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Status {
    code: u8,
}

impl Status {
    pub(super) const UNSET: Self = Self { code: 0 };
    pub(super) const ERROR: Self = Self { code: 2 };

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_unset(&self) -> bool {
        *self == Self::UNSET
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Attribute<'a> {
    key: &'a str,
    value: Value<'a>,
}

#[derive(Debug, Serialize)]
enum Value<'a> {
    #[serde(rename = "stringValue")]
    Text(Cow<'a, str>),
    #[serde(rename = "intValue")]
    Int(Int64Text<i64>),
    #[serde(rename = "doubleValue")]
    Double(f64),
    #[serde(rename = "boolValue")]
    Flag(bool),
}

/// A 64-bit number, written as a string, because JSON readers could lose digits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Int64Text<T>(pub(super) T);

impl<T: Display> Serialize for Int64Text<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'a> Attribute<'a> {
    fn new(key: &'static str, value: Value<'a>) -> Self {
        Self { key, value }
    }

    pub(super) fn label(key: &'a str, value: String) -> Self {
        Self {
            key,
            value: Value::Text(Cow::Owned(value)),
        }
    }

    pub(super) fn text(key: &'static str, value: impl Into<Cow<'a, str>>) -> Self {
        Self::new(key, Value::Text(value.into()))
    }

    pub(super) fn int(key: &'static str, value: i64) -> Self {
        Self::new(key, Value::Int(Int64Text(value)))
    }

    /// A count. Counts above the signed range are written as the largest signed number.
    pub(super) fn count(key: &'static str, value: u64) -> Self {
        Self::int(key, i64::try_from(value).unwrap_or(i64::MAX))
    }

    pub(super) fn double(key: &'static str, value: f64) -> Self {
        Self::new(key, Value::Double(value))
    }

    pub(super) fn flag(key: &'static str, value: bool) -> Self {
        Self::new(key, Value::Flag(value))
    }
}
