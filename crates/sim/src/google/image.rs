//! Reads the pictures that a request asks for, and knows their size in tokens.

use super::{Field, Refusal};
use crate::picture::png;
use crate::seal::encode;

const RATIOS: &[&str] = &[
    "1:1", "1:4", "1:8", "2:3", "3:2", "3:4", "4:1", "4:3", "4:5", "5:4", "8:1", "9:16", "16:9",
    "21:9",
];
/// For each size: its name, the tokens of one picture, and the longer side of the simulator's picture in pixels. Real
/// pictures are far larger.
const TIERS: &[(&str, u64, u32)] = &[
    ("512", 747, 16),
    ("0.5K", 747, 16),
    ("1K", 1120, 32),
    ("2K", 1680, 64),
    ("4K", 2520, 128),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picture {
    width: u32,
    height: u32,
    pub(crate) tokens: u64,
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
    /// The picture as base64. The same words always give the same picture.
    pub(crate) fn painted(self, words: &str) -> String {
        encode(&png(self.width, self.height, words))
    }
}

/// Reads an object with `image_size` and `aspect_ratio`.
pub(crate) fn read_picture(image: &Field<'_>) -> Result<Picture, Refusal> {
    let tier = image.text("image_size")?.unwrap_or("1K");
    let Some((_, tokens, longest)) = TIERS.iter().find(|(name, ..)| *name == tier) else {
        return Err(bad_value(image, "image_size", tier));
    };
    let ratio = image.text("aspect_ratio")?.unwrap_or("1:1");
    let shape = RATIOS
        .contains(&ratio)
        .then(|| ratio.split_once(':'))
        .flatten()
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    let Some((across, down)): Option<(u32, u32)> = shape else {
        return Err(bad_value(image, "aspect_ratio", ratio));
    };
    let longer = across.max(down).max(1);
    Ok(Picture {
        width: (longest * across / longer).max(1),
        height: (longest * down / longer).max(1),
        tokens: *tokens,
    })
}

fn bad_value(image: &Field<'_>, name: &str, value: &str) -> Refusal {
    let path = image.path(name);
    Refusal::invalid(format!("Invalid value at '{path}': {value}")).field(&path)
}
