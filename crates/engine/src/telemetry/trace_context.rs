//! Ids of traces and spans, and the `traceparent` header in which programs pass them on (W3C Trace Context).

use std::fmt;

use http::HeaderValue;
use rand::RngExt as _;
use serde::{Serialize, Serializer};

/// The id of a trace; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(u128);

/// The id of a span; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanId(u64);

impl TraceId {
    fn fresh() -> Self {
        Self(rand::rng().random::<u128>().max(1))
    }
}

impl SpanId {
    pub(crate) fn fresh() -> Self {
        Self(rand::rng().random::<u64>().max(1))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The span of a caller, as named in its `traceparent` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traceparent {
    trace: TraceId,
    span: SpanId,
    /// Whether the caller records its own span.
    is_sampled: bool,
}

/// The length of `00-<32 digits>-<16 digits>-<2 digits>`.
const TRACEPARENT_BYTES: usize = 55;

impl Traceparent {
    /// Reads the header. Values that the standard calls invalid are ignored.
    pub fn read(value: &[u8]) -> Option<Self> {
        let (head, rest) = value.split_at_checked(TRACEPARENT_BYTES)?;
        let head = str::from_utf8(head).ok()?;
        let mut parts = head.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace = hex(parts.next()?, 32)?;
        let span = hex(parts.next()?, 16)?;
        let flags = hex(parts.next()?, 2)?;
        // Later versions may append parts, but version 0 may not.
        let is_whole = rest.is_empty() || (version > 0 && rest.first() == Some(&b'-'));
        if version == 0xff || trace == 0 || span == 0 || !is_whole || parts.next().is_some() {
            return None;
        }
        Some(Self {
            trace: TraceId(trace),
            span: SpanId(u64::try_from(span).ok()?),
            is_sampled: flags & 1 == 1,
        })
    }

    #[cfg(test)]
    pub(crate) fn trace_id(&self) -> TraceId {
        self.trace
    }
}

/// Parses a number of exactly `digits` hexadecimal digits in lower case.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != digits || !text.bytes().all(is_digit) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// The fraction of calls that is traced, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRatio(u32);

impl SampleRatio {
    /// Every call.
    pub const ALL: Self = Self(1_000_000);

    /// Traces `calls` out of a million calls; `None` for more than a million.
    pub fn of_million(calls: u32) -> Option<Self> {
        (calls <= Self::ALL.0).then_some(Self(calls))
    }

    /// Whether a trace is kept. All programs that use the same part of the id for this decision agree.
    fn keeps(self, trace: TraceId) -> bool {
        const RANDOM_BITS: u32 = 56;
        let random = trace.0 & ((1 << RANDOM_BITS) - 1);
        random < (u128::from(self.0) << RANDOM_BITS) / u128::from(Self::ALL.0)
    }
}

/// The ids of one call: its trace, its span, and the span of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace that the call belongs to.
    pub trace: TraceId,
    pub(crate) span: SpanId,
    pub(crate) parent: Option<SpanId>,
}

impl TraceContext {
    /// Begins a trace; returns `None` if the call is not traced. If `parent` is given, the call is traced only if the
    /// caller records its own span, and it continues the caller's trace. Otherwise the ratio decides.
    pub(crate) fn begin(parent: Option<&Traceparent>, ratio: SampleRatio) -> Option<Self> {
        let (trace, is_kept) = if let Some(parent) = parent {
            (parent.trace, parent.is_sampled)
        } else {
            let trace = TraceId::fresh();
            (trace, ratio.keeps(trace))
        };
        is_kept.then(|| Self {
            trace,
            span: SpanId::fresh(),
            parent: parent.map(|parent| parent.span),
        })
    }

    /// The header that identifies `span` of this trace to an upstream.
    pub(crate) fn header(&self, span: SpanId) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("00-{}-{span}-01", self.trace)).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_traceparent_is_read_as_the_standard_says() {
        let good = format!("00-{TRACE}-{SPAN}-01");
        for (value, sampled) in [
            (good.clone(), true),
            (format!("00-{TRACE}-{SPAN}-00"), false),
            (format!("00-{TRACE}-{SPAN}-03"), true),
            (format!("cc-{TRACE}-{SPAN}-01"), true),
            (format!("cc-{TRACE}-{SPAN}-01-what-the-future-says"), true),
        ] {
            let read = Traceparent::read(value.as_bytes()).unwrap();
            assert_eq!(
                (read.trace.to_string(), read.span.to_string()),
                (TRACE.into(), SPAN.into())
            );
            assert_eq!(read.is_sampled, sampled, "{value}");
        }
        for value in [
            String::new(),
            good.to_uppercase(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("cc-{TRACE}-{SPAN}-01.more"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}{SPAN}--01"),
            format!("0x-{TRACE}-{SPAN}-01"),
            format!("+0-{TRACE}-{SPAN}-01"),
            format!(" {good}"),
        ] {
            assert_eq!(Traceparent::read(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn a_call_continues_the_trace_of_its_caller() {
        let caller = Traceparent::read(format!("00-{TRACE}-{SPAN}-01").as_bytes()).unwrap();
        // If the caller records its span, ours is recorded too, regardless of the ratio.
        let none = SampleRatio::of_million(0).unwrap();
        let context = TraceContext::begin(Some(&caller), none).unwrap();
        assert_eq!(context.trace.to_string(), TRACE);
        assert_eq!(context.parent.unwrap().to_string(), SPAN);
        assert_ne!(context.span, caller.span);
        let header = context.header(context.span).unwrap();
        let read = Traceparent::read(header.as_bytes()).unwrap();
        assert_eq!((read.trace, read.span), (context.trace, context.span));
        assert!(read.is_sampled);

        let silent = Traceparent::read(format!("00-{TRACE}-{SPAN}-00").as_bytes()).unwrap();
        assert_eq!(TraceContext::begin(Some(&silent), SampleRatio::ALL), None);
        assert_eq!(TraceContext::begin(None, none), None);
        assert!(TraceContext::begin(None, SampleRatio::ALL).is_some());
        assert_eq!(SampleRatio::of_million(1_000_001), None);
    }

    #[test]
    fn a_ratio_keeps_that_part_of_all_traces() {
        let quarter = SampleRatio::of_million(250_000).unwrap();
        let step = (1_u128 << 56) / 1_000;
        let kept = (0..1_000).filter(|n| quarter.keeps(TraceId(n * step + step / 2)));
        assert_eq!(kept.count(), 250);
        // Only the random part of the id counts.
        assert!(quarter.keeps(TraceId((u128::MAX << 56) | 1)));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(value in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Traceparent::read(&value);
        }

        #[test]
        fn what_is_written_is_read(trace in 1..=u128::MAX, span in 1..=u64::MAX) {
            let context = TraceContext { trace: TraceId(trace), span: SpanId(span), parent: None };
            let header = context.header(context.span).unwrap();
            let read = Traceparent::read(header.as_bytes()).unwrap();
            prop_assert_eq!((read.trace, read.span), (context.trace, context.span));
        }
    }
}
