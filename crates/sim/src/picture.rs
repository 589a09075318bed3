//! Small PNG pictures whose colours depend on the given words.

use crate::seed::Seed;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

/// A picture of this size. Equal words give equal pictures.
pub(crate) fn png(width: u32, height: u32, words: &str) -> Vec<u8> {
    let mut picture = Vec::new();
    // Without compression, the length of the file depends only on the size of the picture, and faults that break off
    // after a number of bytes break off in the same place for all words.
    let compression = CompressionType::Uncompressed;
    let encoder = PngEncoder::new_with_quality(&mut picture, compression, FilterType::NoFilter);
    let stripes = stripes(width, height, words);
    // Writing to memory cannot fail, and there are as many pixels as the size says.
    let _ = encoder.write_image(&stripes, width, height, ExtendedColorType::Rgb8);
    picture
}

/// The pixels of horizontal stripes, each of one row and one colour.
fn stripes(width: u32, height: u32, words: &str) -> Vec<u8> {
    let mut seed = Seed::of(&[words.as_bytes()]);
    let mut row = || {
        let [red, green, blue, ..] = seed.next().to_le_bytes();
        (0..width).flat_map(move |_| [red, green, blue])
    };
    (0..height).flat_map(|_| row()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_its_size_and_depends_on_the_words() {
        let picture = png(16, 9, "a cat");
        let decoded = image::load_from_memory(&picture).unwrap();
        assert_eq!((decoded.width(), decoded.height()), (16, 9));
        assert_eq!(picture, png(16, 9, "a cat"));
        let other = png(16, 9, "a dog");
        assert_ne!(picture, other);
        assert_eq!(picture.len(), other.len());
    }
}
