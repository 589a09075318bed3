//! The price grade of an image: its quality and its size.

use std::fmt;

use super::family::Family;
use super::request::Options;

/// Values by which a request leaves the choice to the upstream.
const LEFT_TO_UPSTREAM: [&str; 2] = ["auto", "adaptive"];

/// No upstream makes an image whose sides have more digits.
const SIDE_DIGITS_MAX: usize = 5;

/// The quality, resolution and size of images, as requested or as reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceGrade {
    /// The quality.
    pub quality: Option<Box<str>>,
    /// The resolution tier.
    pub resolution: Option<Box<str>>,
    /// The size in pixels, or a tier if the family uses tiers as sizes.
    pub size: Option<Box<str>>,
}

impl PriceGrade {
    /// The grade that an upstream of this family is asked for. Members that the family does not
    /// receive are left out.
    pub fn requested(options: &Options, family: Family) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(Box::from);
        let (size, resolution) = (text(&options.size), text(&options.resolution));
        let (size, resolution) = match family {
            Family::VideoA => (None, resolution),
            Family::Content => (size.or(resolution), None),
            Family::Gpt | Family::Unknown => (size, resolution),
        };
        Self {
            quality: text(&options.quality),
            resolution,
            size,
        }
    }

    /// Adds the grade of another image. The larger of two sizes is kept.
    pub(super) fn merge(&mut self, further: Self) {
        let pixels = |size: &Option<Box<str>>| {
            let size = size.as_deref().and_then(Size::parse);
            size.and_then(Size::pixels)
        };
        self.quality = further.quality.or(self.quality.take());
        self.resolution = further.resolution.or(self.resolution.take());
        if self.size.is_none() || pixels(&further.size) > pixels(&self.size) {
            self.size = further.size;
        }
    }
}

/// Whether a value leaves the choice to the upstream.
pub fn is_left_to_upstream(word: &str) -> bool {
    LEFT_TO_UPSTREAM
        .iter()
        .any(|open| word.eq_ignore_ascii_case(open))
}

/// A size, as in requests, answers and price cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// `auto`: the upstream chooses.
    Open,
    /// `1536x1024`.
    Pixels {
        /// Width.
        width: u32,
        /// Height.
        height: u32,
    },
    /// `2k`: a square whose side is this many thousandths of 1,024 pixels.
    Tier {
        /// 2,000 for `2k`, 500 for `0.5k`.
        thousandths: u32,
    },
}

impl Size {
    /// Reads a size. `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        if is_left_to_upstream(text) {
            return Some(Self::Open);
        }
        if let Some(number) = text.strip_suffix(['k', 'K']) {
            let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
            // `1.5` is 1,500 thousandths.
            digits(part, 3)?;
            let thousandths = digits(whole, 2)? * 1_000 + digits(&format!("{part:0<3}"), 3)?;
            return (thousandths > 0).then_some(Self::Tier { thousandths });
        }
        let (width, height) = text.split_once(['x', 'X'])?;
        let side = |text| digits(text, SIDE_DIGITS_MAX).filter(|side| *side > 0);
        Some(Self::Pixels {
            width: side(width)?,
            height: side(height)?,
        })
    }

    /// The number of pixels, unless the upstream chooses.
    pub fn pixels(self) -> Option<u64> {
        match self {
            Self::Open => None,
            Self::Pixels { width, height } => Some(u64::from(width) * u64::from(height)),
            Self::Tier { thousandths } => {
                let side = u64::from(thousandths) * 1_024 / 1_000;
                Some(side * side)
            }
        }
    }

    /// The tier of a size in pixels: the smallest whole tier with at least as many pixels.
    #[must_use]
    pub fn tier(self) -> Self {
        let Self::Pixels { .. } = self else {
            return self;
        };
        let tiers = (1_000..).step_by(1_000);
        let mut tiers = tiers.map(|thousandths| Self::Tier { thousandths });
        // The largest size that can be parsed is in tier `98k`.
        tiers
            .find(|tier| tier.pixels() >= self.pixels())
            .unwrap_or(self)
    }
}

/// The notation of price cards.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("auto"),
            Self::Pixels { width, height } => write!(f, "{width}x{height}"),
            Self::Tier { thousandths } => {
                write!(f, "{}", thousandths / 1_000)?;
                let part = format!("{:03}", thousandths % 1_000);
                match part.trim_end_matches('0') {
                    "" => f.write_str("k"),
                    part => write!(f, ".{part}k"),
                }
            }
        }
    }
}

fn digits(text: &str, most: usize) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && text.len() <= most)
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_lie_in_tiers() {
        for (size, tier) in [
            ("2K", "2k"),
            ("0.5k", "0.5k"),
            ("02.0K", "2k"),
            ("1024x1024", "1k"),
            ("1280X720", "1k"),
            ("1536x1024", "2k"),
            ("2048x2048", "2k"),
            ("2560x1440", "2k"),
            ("4096x4096", "4k"),
            ("4097x4096", "5k"),
            ("99999x99999", "98k"),
            ("auto", "auto"),
            ("Adaptive", "auto"),
        ] {
            let read = Size::parse(size).unwrap();
            assert_eq!(read.tier().to_string(), tier, "{size}");
        }
        assert_eq!(Size::parse("0640x480").unwrap().to_string(), "640x480");
    }

    #[test]
    fn texts_that_are_not_sizes_are_not_read_as_sizes() {
        for text in [
            "",
            "low",
            "high",
            "k",
            ".5k",
            "1.k",
            "1.2.3k",
            "-1k",
            "0k",
            "x",
            "1x",
            "x1",
            "0x9",
            "1024",
            "1024 x 1024",
            "1024x1024x3",
            "１x１",
            "999999x1",
            "1e3x2",
            "2kk",
            "default",
        ] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }

    #[test]
    fn members_that_a_family_is_not_sent_have_no_part_in_its_grade() {
        let options = Options {
            quality: Some("high".to_owned()),
            resolution: Some("2k".to_owned()),
            size: Some("64x48".to_owned()),
            ..Options::default()
        };
        for (family, resolution, size) in [
            (Family::Gpt, Some("2k"), Some("64x48")),
            (Family::Unknown, Some("2k"), Some("64x48")),
            (Family::VideoA, Some("2k"), None),
            (Family::Content, None, Some("64x48")),
        ] {
            let grade = PriceGrade::requested(&options, family);
            assert_eq!(grade.quality.as_deref(), Some("high"));
            let found = (grade.resolution.as_deref(), grade.size.as_deref());
            assert_eq!(found, (resolution, size), "{family:?}");
        }
    }
}
