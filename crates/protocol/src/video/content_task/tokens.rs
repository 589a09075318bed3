//! Computes the upper bound for the tokens of a video.
//!
//! An upstream counts width x height x frames / 1024, with 24 frames per second and one additional
//! frame. The ratios of one resolution have about the same area. The largest area of each
//! resolution counts, so that a settlement within the bound never exceeds its hold.

use super::check::{AUTO, Mode};
use super::request::Request;
use super::resolution::{pixels_max, pixels_of};
use crate::profile::{AllowedValues, Profile};

const FRAMES_PER_SECOND: u64 = 24;
const PIXEL_FRAMES_PER_TOKEN: u64 = 1024;

impl Request {
    /// The tokens that the hold is for. If the model chooses the duration, or the request does not
    /// set it (older prompts have it in their text), the longest duration counts. So it does for
    /// edits and for final versions of drafts, which have the duration of another video. Reference
    /// videos count with their longest duration.
    pub(super) fn tokens_max(&self, profile: &Profile) -> u64 {
        let asked = self.options.duration.filter(|duration| *duration != AUTO);
        let asked = asked.and_then(|seconds| u64::try_from(seconds).ok());
        let known = profile.durations.as_ref().and_then(AllowedValues::largest);
        let known = known.and_then(|seconds| u64::try_from(seconds).ok());
        let longest = known.unwrap_or(u64::MAX);
        let seconds = match self.mode() {
            Mode::Edit | Mode::Draft => asked.max(known),
            _ => asked,
        };
        let seconds = seconds.unwrap_or(longest);
        let in_text = &self.content.text_options;
        let frames = [
            Some(match self.options.frames {
                Some(frames) => frames,
                None => frames_of(seconds),
            }),
            in_text.frames,
            in_text.seconds.map(|text| frames_of(text.min(longest))),
        ];
        let frames = frames.into_iter().flatten().max().unwrap_or(u64::MAX);
        let source = match self.content.videos {
            0 => 0,
            _ => frames_of(profile.source_seconds_max.unwrap_or(seconds)),
        };
        let frames = u128::from(frames) + u128::from(source);
        let pixels = self.resolutions(profile).into_iter();
        let pixels = pixels
            .map(|resolution| pixels_of(resolution, profile))
            .max();
        let pixels = u128::from(pixels.unwrap_or_else(|| pixels_max(profile)));
        let tokens = (frames * pixels).div_ceil(PIXEL_FRAMES_PER_TOKEN.into());
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

fn frames_of(seconds: u64) -> u64 {
    seconds.saturating_mul(FRAMES_PER_SECOND).saturating_add(1)
}
