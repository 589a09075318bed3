//! Creates small PNG pictures whose colours depend on the given words.

use crate::seed::Seed;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

/// Creates a picture of this size. The same words always give the same picture.
pub(crate) fn png(width: u32, height: u32, words: &str) -> Vec<u8> {
    let mut picture = Vec::new();
    // Without compression, the length of the file depends only on the size of the picture. A fault at a byte position
    // then affects all pictures of that size in the same place.
    let compression = CompressionType::Uncompressed;
    let encoder = PngEncoder::new_with_quality(&mut picture, compression, FilterType::NoFilter);
    let stripes = stripes(width, height, words);
    // Writing to memory cannot fail, and the number of pixels matches the size.
    let _ = encoder.write_image(&stripes, width, height, ExtendedColorType::Rgb8);
    picture
}

/// The pixels of horizontal stripes. Each stripe is one row of one colour.
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
