//! Limits of media: file sizes, the duration of a copy, and limits for readers.

use std::time::Duration;

use protocol::video::MediaKind;
use upstream::{FetchLimits, Timeouts};

/// The maximum number of concurrent copies. Further copies are tried later, so that they do not
/// occupy the slots of polls.
pub(crate) const COPIES_MAX: usize = 64;
/// The time limit for connecting, including the DNS lookup.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The maximum pause before and within a response.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Settings of media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaLimits {
    pub video_bytes_max: u64,
    pub picture_bytes_max: u64,
    /// The time limit from the DNS lookup to the last byte.
    pub within: Duration,
    /// The pause between two sweeps.
    pub sweep_every: Duration,
    /// The maximum number of concurrent readers of media.
    pub reads_max: usize,
    /// The time limit from a reader's request to its last byte. A slower reader can request the
    /// rest as a range.
    pub read_within: Duration,
}

impl Default for MediaLimits {
    fn default() -> Self {
        Self {
            video_bytes_max: 512 << 20,
            picture_bytes_max: 20 << 20,
            within: Duration::from_secs(15 * 60),
            sweep_every: Duration::from_secs(60 * 60),
            reads_max: 512,
            read_within: Duration::from_secs(30 * 60),
        }
    }
}

impl MediaLimits {
    pub(super) fn bytes_max(self, kind: MediaKind) -> u64 {
        match kind {
            MediaKind::Mp4 | MediaKind::Mov => self.video_bytes_max,
            MediaKind::Png => self.picture_bytes_max,
        }
    }

    pub(super) fn of_fetch(self, kind: MediaKind) -> FetchLimits {
        FetchLimits {
            times: Timeouts {
                connect: CONNECT_MAX.min(self.within),
                first_byte: SILENCE_MAX.min(self.within),
                idle: SILENCE_MAX.min(self.within),
                total: self.within,
            },
            bytes_max: self.bytes_max(kind),
        }
    }
}
