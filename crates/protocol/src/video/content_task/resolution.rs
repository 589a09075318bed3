//! The resolutions of videos.

use crate::profile::Profile;

/// The largest frame of each resolution, in pixels.
const PIXELS: [(&str, u64); 4] = [
    ("480p", 430_000),
    ("720p", 970_000),
    ("1080p", 2_100_000),
    ("4k", 8_700_000),
];

/// The resolution of this name, in any case.
pub(super) fn known_resolution(name: &str) -> Option<&'static str> {
    let mut known = PIXELS.iter().map(|(known, _)| *known);
    known.find(|known| known.eq_ignore_ascii_case(name))
}

/// The area of a resolution. If it is not known, the largest that the model supports.
pub(super) fn pixels_of(resolution: &str, profile: &Profile) -> u64 {
    let known = PIXELS.iter().find(|(name, _)| *name == resolution);
    known.map_or_else(|| pixels_max(profile), |(_, pixels)| *pixels)
}

/// The largest area that the model supports.
pub(super) fn pixels_max(profile: &Profile) -> u64 {
    let may_be = |name: &str| match &profile.resolutions {
        Some(resolutions) => resolutions.has_word(name),
        None => true,
    };
    let known = PIXELS.iter().filter(|(name, _)| may_be(name));
    let largest = known.map(|(_, pixels)| *pixels).max();
    largest.unwrap_or(PIXELS[PIXELS.len() - 1].1)
}
