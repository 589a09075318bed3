//! How much one medium may be, how long its copy may take, and how it may be read.

use std::time::Duration;

use protocol::video::MediaKind;
use upstream::{FetchLimits, Timeouts};

/// Copies at once. One more waits for its turn outside, so that it takes no place from polls.
pub(crate) const COPIES_MAX: usize = 64;
/// Until connected, the look at the name included.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Silence before and within an answer.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What operators can set about media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaLimits {
    pub video_bytes_max: u64,
    pub picture_bytes_max: u64,
    /// From the first look at a name to the last byte.
    pub within: Duration,
    /// The pause between two sweeps.
    pub sweep_every: Duration,
    /// Who may read media at once.
    pub reads_max: usize,
    /// From a reader's request to its last byte. Whoever is slower asks for the rest as a range.
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
    /// The largest file of a kind.
    pub(super) fn bytes_max(self, kind: MediaKind) -> u64 {
        match kind {
            MediaKind::Mp4 | MediaKind::Mov => self.video_bytes_max,
            MediaKind::Png => self.picture_bytes_max,
        }
    }

    /// The bounds of a fetch.
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
