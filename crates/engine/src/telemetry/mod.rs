//! Telemetry for the operator's own collector, sent by OTLP: a trace of each call, made from the data of its journal
//! row, and the metrics of the node.
//!
//! `trace_context` creates trace ids and reads `traceparent`. `call_trace` collects the attempts of a running call, and
//! `queue` takes the call when it is over. `export` batches the queued calls and delivers them; `spans`, `metrics` and
//! `otlp` define the content. Calls never wait for any of this (`docs/decisions/071`).

mod call_trace;
mod deliver;
mod export;
mod finished_call;
mod metrics;
mod otlp;
mod queue;
mod settings;
mod spans;
mod trace_context;

pub(crate) use call_trace::CallTrace;
pub(crate) use finished_call::FinishedCall;
pub(crate) use queue::Telemetry;
pub use settings::TelemetrySettings;
pub use trace_context::{SampleRatio, TraceContext, TraceId, Traceparent};
