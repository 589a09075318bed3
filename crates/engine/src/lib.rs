//! The use cases of the gateway: admit, route, relay, settle, journal.
//!
//! The engine knows wallets, models, channels and dialects. It must not know the HTTP server in front of it or the
//! database behind the store. Start reading at `call/run.rs`, which runs every call, and `text/call.rs`, which prepares
//! text calls. `call/admission.rs` owns the hold of a call until it is settled.

mod alert;
mod billing;
mod call;
mod caller_urls;
mod callers;
mod catalog;
pub mod clock;
mod embeddings;
mod engine;
mod failures;
mod idle_connections;
pub mod ids;
mod images;
mod media;
mod memory_budget;
mod metrics;
mod probe;
mod route;
mod session;
mod settings;
mod speech;
mod task;
mod telemetry;
mod text;
mod token_renewal;

pub use alert::{
    AlertSettings, CallCounts, UnusualErrors, WebhookError, check_webhook, send_test,
    unusual_errors,
};
pub use billing::route_cost::RouteCost;
pub use call::answer::{Answer, AnswerBody};
pub use call::arrival::Arrival;
pub use call::failed_call::FailedCall;
pub use call::record::{FALLBACK, NOTE_SEPARATOR, PASSED_OVER};
pub use call::stream::StreamRelay;
pub use caller_urls::ImageFetchLimits;
pub use callers::keyring::LastKey;
pub use callers::limits::{Caller, CallerLimits};
pub use catalog::{Catalog, CatalogError, Model, ModelSpec, Route, RouteSpec};
pub use embeddings::{EmbeddingsCall, EmbeddingsPath};
pub use engine::{CallSlot, Engine};
pub use failures::Aborted;
pub use images::{ImagesBody, ImagesCall};
pub use media::{MediaLimits, MediaRead, MediaStream, StorageState};
pub use memory_budget::{LimitOwner, MemoryBudget, MemoryShare};
pub use metrics::exemplars::TracedMoment;
pub use metrics::registry::Metrics;
pub use metrics::request_tally::Tally;
pub use probe::{ModelsAnswer, ProbeOutcome, ask_for_models};
pub use route::{RouteLimits, RouteOrder, Routing};
pub use session::{OpenSession, SessionCall, SessionKind, SessionLimits};
pub use settings::{Commit, Settings};
pub use speech::{SpeechCall, TranscriptCall, Upload, VoiceForm, VoicesCall};
pub use task::{ListQuery, TaskSettings, VideoCall, VideoEndpoint, video_protocols};
pub use telemetry::{SampleRatio, TelemetrySettings, TraceContext, TraceId, Traceparent};
pub use text::request::{TextCall, TextPath};
pub use text::token_count::TokenCountCall;
