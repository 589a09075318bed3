//! Computes the upper bound for the tokens of a video.
//!
//! An upstream counts width x height x frames / 1024, with 24 frames per second and one additional
//! frame. The ratios of one resolution have about the same area. The table has the largest area of
//! each resolution, so that a settlement within the bound never exceeds its hold.

use super::check::AUTO;
use super::request::Request;
use crate::profile::{AllowedValues, Profile};

/// The largest frame of each resolution, in pixels.
const PIXELS: [(&str, u64); 4] = [
    ("480p", 430_000),
    ("720p", 970_000),
    ("1080p", 2_100_000),
    ("4k", 8_700_000),
];
const FRAMES_PER_SECOND: u64 = 24;
const PIXEL_FRAMES_PER_TOKEN: u64 = 1024;

impl Request {
    /// The tokens that the hold is for. If the model chooses the duration, or the request does not
    /// set it (older prompts have it in their text), the longest duration counts. Reference videos
    /// count with their longest duration.
    pub(super) fn tokens_max(&self, profile: &Profile) -> u64 {
        let asked = self.options.duration.filter(|duration| *duration != AUTO);
        let asked = asked.and_then(|seconds| u64::try_from(seconds).ok());
        let longest = profile.durations.as_ref().and_then(AllowedValues::largest);
        let longest = longest.and_then(|seconds| u64::try_from(seconds).ok());
        let seconds = asked.or(longest).unwrap_or(u64::MAX);
        let frames = match self.options.frames {
            Some(frames) => frames,
            None => frames_of(seconds),
        };
        let source = match self.content.videos {
            0 => 0,
            _ => frames_of(profile.source_seconds_max.unwrap_or(seconds)),
        };
        let frames = u128::from(frames) + u128::from(source);
        let pixels = u128::from(pixels(self.resolution(profile), profile));
        let tokens = (frames * pixels).div_ceil(PIXEL_FRAMES_PER_TOKEN.into());
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

fn frames_of(seconds: u64) -> u64 {
    seconds.saturating_mul(FRAMES_PER_SECOND).saturating_add(1)
}

/// The area of a resolution. If the resolution is not known, the largest area that the model
/// supports.
fn pixels(resolution: Option<&str>, profile: &Profile) -> u64 {
    let of = |wanted: &str| PIXELS.iter().find(|(name, _)| *name == wanted);
    if let Some((_, pixels)) = resolution.and_then(of) {
        return *pixels;
    }
    let may_be = |name: &str| match &profile.resolutions {
        Some(resolutions) => resolutions.has_word(name),
        None => true,
    };
    let known = PIXELS.iter().filter(|(name, _)| may_be(name));
    let largest = known.map(|(_, pixels)| *pixels).max();
    largest.unwrap_or(PIXELS[PIXELS.len() - 1].1)
}
