//! Telemetry for the operator's own collector, by OTLP: a trace of each call, made from what the journal gets, and the
//! metrics of the node.
//!
//! `trace_context` names traces and reads `traceparent`. `call_trace` collects the attempts of a call while it runs, and
//! `queue` takes the call when it is over. `export` batches what waits and delivers it; `spans`, `metrics` and `otlp` say
//! what is sent. Calls never wait for any of it (`docs/decisions/071`).

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
