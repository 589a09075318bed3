//! Finds options in the text of a request, as in `a kite --rs 1080p --dur 12`.
//!
//! Older models read them there. Which one applies if a member says something else is not
//! documented, and neither is what becomes of a value that the model does not have. So the text
//! passes unchanged, and the hold covers every possibility.

use super::resolution::known_resolution;

/// The duration that upstreams choose if an option names none that they have.
const DEFAULT_SECONDS: u64 = 5;
/// The largest number of frames of a video.
const FRAMES_MAX: u64 = 289;

/// The options of all texts of a request that affect its cost.
#[derive(Debug, Default)]
pub(super) struct TextOptions {
    pub(super) resolution: TextResolution,
    /// The largest duration; `u64::MAX` if a duration cannot be read.
    pub(super) seconds: Option<u64>,
    /// The largest number of frames.
    pub(super) frames: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextResolution {
    #[default]
    Absent,
    /// The texts name this resolution and no other.
    One(&'static str),
    /// The texts name several resolutions, or one that cannot be read.
    Any,
}

impl TextOptions {
    /// Adds the options of one text.
    pub(super) fn read(&mut self, text: &str) {
        for option in text.split("--").skip(1) {
            let option = option.trim_start_matches('-');
            let name_end = option.find(|c: char| !c.is_ascii_alphabetic());
            let (name, rest) = option.split_at(name_end.unwrap_or(option.len()));
            let value_start = rest.find(char::is_alphanumeric).unwrap_or(rest.len());
            let (before, value) = rest.split_at(value_start);
            let value_end = value.find(|c: char| !c.is_alphanumeric());
            let value = value.get(..value_end.unwrap_or(value.len()));
            let value = value.unwrap_or_default();
            // A negative number lets the model choose.
            let number = value.parse().ok().filter(|_| !before.ends_with('-'));
            let is = |names: [&str; 2]| names.iter().any(|it| it.eq_ignore_ascii_case(name));
            if is(["resolution", "rs"]) {
                self.resolution = self.resolution.with(known_resolution(value));
            } else if is(["duration", "dur"]) {
                let seconds = number.unwrap_or(u64::MAX).max(DEFAULT_SECONDS);
                self.seconds = self.seconds.max(Some(seconds));
            } else if name.eq_ignore_ascii_case("frames") {
                let frames = number.unwrap_or(FRAMES_MAX).min(FRAMES_MAX);
                self.frames = self.frames.max(Some(frames));
            }
        }
    }
}

impl TextResolution {
    fn with(self, named: Option<&'static str>) -> Self {
        match (self, named) {
            (Self::Absent, Some(named)) => Self::One(named),
            (Self::One(before), Some(named)) if before == named => self,
            _ => Self::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_wherever_a_text_has_them() {
        use TextResolution::{Absent, Any, One};
        for (text, resolution, seconds, frames) in [
            ("a kite", Absent, None, None),
            ("a kite -- rs 1080p", Absent, None, None),
            ("a kite - rs 1080p --fps 24 --rt 16:9", Absent, None, None),
            ("a kite --rs 1080p", One("1080p"), None, None),
            (
                "--resolution 480p a kite --rs 480P",
                One("480p"),
                None,
                None,
            ),
            ("kite--RS=4K", One("4k"), None, None),
            ("--rs 480p --rs 1080p", Any, None, None),
            ("--rs 1080", Any, None, None),
            ("--rs \u{ff11}080p", Any, None, None),
            ("a kite --rs", Any, None, None),
            ("--rs --dur 12", Any, Some(12), None),
            ("---dur 12 --duration 8", Absent, Some(12), None),
            ("--dur 2", Absent, Some(DEFAULT_SECONDS), None),
            ("--dur -1", Absent, Some(u64::MAX), None),
            ("--dur twelve", Absent, Some(u64::MAX), None),
            ("--dur 99999999999999999999", Absent, Some(u64::MAX), None),
            ("--frames 29 --frames 61", Absent, None, Some(61)),
            ("--frames 999", Absent, None, Some(FRAMES_MAX)),
            ("--", Absent, None, None),
            ("\u{2014}--\u{2014}", Absent, None, None),
        ] {
            let mut options = TextOptions::default();
            options.read(text);
            let found = (options.resolution, options.seconds, options.frames);
            assert_eq!(found, (resolution, seconds, frames), "{text}");
        }
    }
}
