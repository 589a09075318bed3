//! The queue between calls and the export. Calls never wait for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, error::TrySendError};
use upstream::{ChannelError, OperatorEndpoint};

use super::finished_call::FinishedCall;
use super::settings::TelemetrySettings;
use super::trace_context::{SampleRatio, TraceContext, Traceparent};
use crate::ids;
use crate::metrics::telemetry_counts::{DropReason, TelemetryCounts};

/// The maximum number of calls in the queue, about a kilobyte each. Further calls are dropped and counted.
const QUEUE_CALLS_MAX: usize = 8_192;

/// The telemetry of a node that has a collector.
#[derive(Debug)]
pub(crate) struct Telemetry {
    sample_ratio: SampleRatio,
    calls: mpsc::Sender<FinishedCall>,
    /// The receiver of `calls`, until the export takes it.
    waiting: Mutex<Option<mpsc::Receiver<FinishedCall>>>,
    /// The number of queued spans that are neither sent nor dropped yet.
    pending: AtomicU64,
    counts: TelemetryCounts,
    /// How often the metrics are sent; `None` if they are not sent.
    pub(super) metrics_every: Option<Duration>,
    pub(super) endpoint: OperatorEndpoint,
    pub(super) headers: HeaderMap,
    pub(super) service_name: String,
    /// Identifies this node among the nodes of the same service.
    pub(super) node: String,
}

impl Telemetry {
    /// Creates the telemetry for these settings; `None` if they name no collector.
    pub(crate) fn new(
        settings: &TelemetrySettings,
        counts: TelemetryCounts,
    ) -> Result<Option<Self>, ChannelError> {
        let Some(url) = &settings.otlp_url else {
            return Ok(None);
        };
        let (calls, waiting) = mpsc::channel(QUEUE_CALLS_MAX);
        let node = settings.node.clone();
        Ok(Some(Self {
            sample_ratio: settings.sample_ratio,
            calls,
            waiting: Mutex::new(Some(waiting)),
            pending: AtomicU64::new(0),
            counts,
            metrics_every: settings.metrics_every,
            endpoint: OperatorEndpoint::new(url)?,
            headers: settings.headers.clone(),
            service_name: settings.service_name.clone(),
            node: node.unwrap_or_else(|| ids::fresh("node_")),
        }))
    }

    /// Begins the trace of a call, if the call is traced.
    pub(crate) fn begin(&self, parent: Option<&Traceparent>) -> Option<TraceContext> {
        TraceContext::begin(parent, self.sample_ratio)
    }

    /// Queues a finished call, unless the queue is full.
    pub(crate) fn push(&self, call: FinishedCall) {
        let spans = call.trace.spans();
        // Counted before the send, because the export may handle the call before the next line runs.
        self.pending.fetch_add(spans, Ordering::Relaxed);
        match self.calls.try_send(call) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.dropped(DropReason::QueueFull, spans),
            Err(TrySendError::Closed(_)) => self.dropped(DropReason::Shutdown, spans),
        }
    }

    /// Takes the receiver of the queue. Only the first caller gets it.
    pub(super) fn take_calls(&self) -> Option<mpsc::Receiver<FinishedCall>> {
        self.waiting.lock().take()
    }

    /// Counts spans that the collector has accepted.
    pub(super) fn sent(&self, spans: u64) {
        self.pending.fetch_sub(spans, Ordering::Relaxed);
        self.counts.sent(spans);
    }

    pub(super) fn dropped(&self, reason: DropReason, spans: u64) {
        self.pending.fetch_sub(spans, Ordering::Relaxed);
        self.counts.dropped(reason, spans);
    }

    /// Drops everything that has not been sent. Returns the number of spans.
    pub(super) fn drop_pending(&self) -> u64 {
        let spans = self.pending.swap(0, Ordering::Relaxed);
        self.counts.dropped(DropReason::Shutdown, spans);
        spans
    }
}
