//! The settings of the engine: calls, sessions, tasks, media, alerts and telemetry.

use std::time::Duration;

use ledger::Micro;
use upstream::AddressPolicy;

use crate::alert::AlertSettings;
use crate::caller_urls::ImageFetchLimits;
use crate::callers::limits::CallerLimits;
use crate::media::MediaLimits;
use crate::session::SessionLimits;
use crate::task::TaskSettings;
use crate::telemetry::TelemetrySettings;

/// When an answer may be sent, relative to the commit of the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// No byte of the answer is sent before the hold is on disk.
    BeforeAnswer,
    /// The answer may be sent before the commit. A power cut may lose the last milliseconds.
    Behind,
}

/// The settings of the engine.
#[derive(Debug, Clone)]
pub struct Settings {
    pub commit: Commit,
    /// The number of output tokens that the first hold of a text call covers, and by which the
    /// hold grows. 0 covers the whole output limit at once.
    pub output_reserve_tokens: u64,
    /// How far below its credit line open calls may take a wallet, as in the settings of the store.
    pub debt_limit: Micro,
    /// Whether the journal keeps redacted bodies.
    pub journal_bodies: bool,
    /// Whether a request that offers a built-in tool without a price is refused.
    pub refuse_unpriced_tools: bool,
    /// Whether realtime sessions are refused if their model has no price for text tokens.
    pub refuse_unpriced_text: bool,
    /// The size limit of a buffered answer.
    pub answer_bytes_max: usize,
    /// The size limit of a buffered answer with pictures, embeddings or audio.
    pub media_bytes_max: usize,
    /// The memory for bodies on the whole node.
    pub bodies_bytes_max: usize,
    /// How much of the node one key and one wallet may use.
    pub callers: CallerLimits,
    /// Limits for images that are fetched for upstreams that do not accept image URLs.
    pub pictures: ImageFetchLimits,
    /// Limits of sessions: their length, silence and message size.
    pub sockets: SessionLimits,
    /// Which addresses we may call on behalf of others.
    pub outbound: AddressPolicy,
    /// How long an upstream is read for its usage after the client has left.
    pub client_gone_drain: Duration,
    /// The silence on a stream after which the client gets a keep-alive.
    pub keep_alive: Duration,
    /// The maximum number of calls in flight on this node.
    pub in_flight_max: usize,
    /// How tasks are polled and how their results are delivered.
    pub tasks: TaskSettings,
    /// Limits of media that we copy and serve.
    pub media: MediaLimits,
    /// How alerts are detected and delivered.
    pub alerts: AlertSettings,
    /// Where traces and metrics are sent, and how many calls are traced.
    pub telemetry: TelemetrySettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            commit: Commit::BeforeAnswer,
            output_reserve_tokens: 4096,
            debt_limit: store::Settings::DEBT_LIMIT,
            journal_bodies: false,
            refuse_unpriced_tools: false,
            refuse_unpriced_text: false,
            answer_bytes_max: 32 << 20,
            media_bytes_max: 100 << 20,
            bodies_bytes_max: 512 << 20,
            callers: CallerLimits::default(),
            pictures: ImageFetchLimits::default(),
            sockets: SessionLimits::default(),
            outbound: AddressPolicy::default(),
            client_gone_drain: Duration::from_secs(5),
            keep_alive: Duration::from_secs(15),
            in_flight_max: 10_000,
            tasks: TaskSettings::default(),
            media: MediaLimits::default(),
            alerts: AlertSettings::default(),
            telemetry: TelemetrySettings::default(),
        }
    }
}
