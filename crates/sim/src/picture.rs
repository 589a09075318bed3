//! Creates small PNG pictures whose colours depend on the given words.

use crate::raster::uncompressed_png;
use crate::seed::Seed;

/// Creates a picture of this size. The same words always give the same picture. The file is not compressed, so its
/// length depends only on the size of the picture. A fault at a byte position then affects all pictures of a size in
/// the same place.
pub(crate) fn png(width: u32, height: u32, words: &str) -> Vec<u8> {
    uncompressed_png(width, height, &stripes(width, height, words))
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
        let decoded = crate::raster::decode(&picture).unwrap();
        assert_eq!(decoded.dimensions(), (16, 9));
        assert_eq!(picture, png(16, 9, "a cat"));
        let other = png(16, 9, "a dog");
        assert_ne!(picture, other);
        assert_eq!(picture.len(), other.len());
    }
}
