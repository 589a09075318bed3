//! Counts spans that were delivered to the collector and spans that were dropped.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

/// The reason why spans did not reach the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// Calls ended faster than their spans could be sent.
    QueueFull,
    /// The collector rejected the spans.
    Refused,
    /// The collector did not answer or was busy at every attempt.
    Unreachable,
    /// The node stopped before the spans were sent.
    Shutdown,
}

impl DropReason {
    const ALL: [Self; 4] = [
        Self::QueueFull,
        Self::Refused,
        Self::Unreachable,
        Self::Shutdown,
    ];

    fn label(self) -> ByReason {
        let reason = match self {
            Self::QueueFull => "queue_full",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Shutdown => "shutdown",
        };
        ByReason { reason }
    }
}

/// The counters of spans. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TelemetryCounts {
    sent: Counter,
    dropped: Family<ByReason, Counter>,
}

impl TelemetryCounts {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let counts = Self::default();
        registry.register(
            "telemetry_spans_sent",
            "Spans that the collector has taken",
            counts.sent.clone(),
        );
        registry.register(
            "telemetry_spans_dropped",
            "Spans that the collector has not got",
            counts.dropped.clone(),
        );
        // Every series exists from the start, at zero, so that its first increase is visible.
        for reason in DropReason::ALL {
            counts.dropped(reason, 0);
        }
        counts
    }

    pub(crate) fn sent(&self, spans: u64) {
        self.sent.inc_by(spans);
    }

    pub(crate) fn dropped(&self, reason: DropReason, spans: u64) {
        self.dropped.get_or_create(&reason.label()).inc_by(spans);
    }
}
