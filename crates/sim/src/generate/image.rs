//! Pictures in answers: how they are asked for, and what they cost.

use crate::google::{Field, Refusal};
use crate::picture::png;
use crate::seal::encode;

const IMAGE_CONFIG: &[&str] = &[
    "aspect_ratio",
    "image_output_options",
    "image_size",
    "output_compression_quality",
    "output_mime_type",
    "person_generation",
    "prominent_people",
];
const RATIOS: &[&str] = &[
    "1:1", "1:4", "1:8", "2:3", "3:2", "3:4", "4:1", "4:3", "4:5", "5:4", "8:1", "9:16", "16:9",
    "21:9",
];
/// The tiers: tokens of one picture, and the longer side of what is really sent, which is small.
const TIERS: &[(&str, u64, u32)] = &[
    ("512", 747, 16),
    ("0.5K", 747, 16),
    ("1K", 1120, 32),
    ("2K", 1680, 64),
    ("4K", 2520, 128),
];

/// What picture is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picture {
    width: u32,
    height: u32,
    pub(super) tokens: u64,
}

impl Default for Picture {
    fn default() -> Self {
        Self {
            width: 32,
            height: 32,
            tokens: 1120,
        }
    }
}

impl Picture {
    /// Base64 of the picture; equal words give equal pictures.
    pub(super) fn painted(self, words: &str) -> String {
        encode(&png(self.width, self.height, words))
    }
}

pub(super) fn read(config: &Field<'_>) -> Result<Option<Picture>, Refusal> {
    let Some(image) = config.child("image_config", IMAGE_CONFIG)? else {
        return Ok(None);
    };
    let tier = image.text("image_size")?.unwrap_or("1K");
    let Some((_, tokens, longest)) = TIERS.iter().find(|(name, ..)| *name == tier) else {
        let path = image.path("image_size");
        return Err(Refusal::invalid(format!("Invalid value at '{path}': {tier}")).field(&path));
    };
    let ratio = image.text("aspect_ratio")?.unwrap_or("1:1");
    let shape = RATIOS
        .contains(&ratio)
        .then(|| ratio.split_once(':'))
        .flatten()
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    let Some((across, down)): Option<(u32, u32)> = shape else {
        let path = image.path("aspect_ratio");
        return Err(Refusal::invalid(format!("Invalid value at '{path}': {ratio}")).field(&path));
    };
    let longer = across.max(down).max(1);
    Ok(Some(Picture {
        width: (longest * across / longer).max(1),
        height: (longest * down / longer).max(1),
        tokens: *tokens,
    }))
}
