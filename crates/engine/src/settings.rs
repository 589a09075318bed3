//! What operators can set about calls, sessions and tasks.

use std::time::Duration;

use upstream::AddressPolicy;

use crate::caller_urls::ImageFetchLimits;
use crate::callers::limits::CallerLimits;
use crate::media::MediaLimits;
use crate::session::SessionLimits;
use crate::task::TaskSettings;

/// When the answer may leave, measured against the hold's commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// No byte of the answer leaves before the hold is on disk.
    BeforeAnswer,
    /// The commit runs behind: a power cut may forget the last milliseconds.
    Behind,
}

/// What operators can set about calls.
#[derive(Debug, Clone)]
pub struct Settings {
    pub commit: Commit,
    /// Output tokens that a hold covers at first, and by which a stream's hold grows.
    pub output_reserve_tokens: u64,
    /// Whether the journal keeps bodies, redacted.
    pub journal_bodies: bool,
    /// Whether a request that offers a built-in tool without a price is refused.
    pub refuse_unpriced_tools: bool,
    /// Whether realtime sessions are refused whose model has no price for text tokens.
    pub refuse_unpriced_text: bool,
    /// The largest buffered answer of an upstream.
    pub answer_bytes_max: usize,
    /// The largest answer with pictures or vectors.
    pub media_bytes_max: usize,
    /// Bodies in memory, whole node.
    pub bodies_bytes_max: usize,
    /// What one key and one wallet may take of the node.
    pub callers: CallerLimits,
    /// What is fetched for upstreams that take no URLs of images.
    pub pictures: ImageFetchLimits,
    /// How long sessions and their silences may be, and how large their messages.
    pub sockets: SessionLimits,
    /// Which addresses we call for others.
    pub outbound: AddressPolicy,
    /// How long an upstream is heard out for its usage after the caller left.
    pub client_gone_drain: Duration,
    /// Silence on a stream after which the caller gets a sign of life.
    pub keep_alive: Duration,
    /// Calls in flight on this node.
    pub in_flight_max: usize,
    /// How asynchronous work is followed.
    pub tasks: TaskSettings,
    /// What is copied of an upstream's media.
    pub media: MediaLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            commit: Commit::BeforeAnswer,
            output_reserve_tokens: 4096,
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
        }
    }
}
