//! The pixels of a picture.

/// Red, green, blue and opacity of one pixel.
pub type Rgba = [u8; 4];

/// A picture of at least one pixel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    width: u32,
    height: u32,
    /// Row by row, from the top.
    pixels: Vec<Rgba>,
}

impl Raster {
    /// A picture of one colour. A side of 0 becomes 1.
    pub fn filled(width: u32, height: u32, colour: Rgba) -> Self {
        let (width, height) = (width.max(1), height.max(1));
        Self {
            width,
            height,
            pixels: vec![colour; width as usize * height as usize],
        }
    }

    /// A picture from its bytes, four for each pixel; `None` if their number does not match the size.
    pub(super) fn from_bytes(width: u32, height: u32, bytes: &[u8]) -> Option<Self> {
        let (pixels, rest) = bytes.as_chunks();
        let count = usize::try_from(u64::from(width) * u64::from(height)).ok()?;
        let is_whole = count > 0 && pixels.len() == count && rest.is_empty();
        is_whole.then(|| Self {
            width,
            height,
            pixels: pixels.to_vec(),
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.pixels.as_flattened()
    }

    pub fn dimensions(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// All pixels, row by row.
    pub fn pixels(&self) -> &[Rgba] {
        &self.pixels
    }

    /// The pixel at this place, or the nearest pixel if the place is outside of the picture.
    pub fn pixel(&self, x: u32, y: u32) -> Rgba {
        let place = self.place(x.min(self.width - 1), y.min(self.height - 1));
        self.pixels.get(place).copied().unwrap_or_default()
    }

    /// Changes one pixel. Outside the picture, nothing changes.
    pub fn set_pixel(&mut self, x: u32, y: u32, colour: Rgba) {
        if x >= self.width {
            return;
        }
        let place = self.place(x, y);
        if let Some(pixel) = self.pixels.get_mut(place) {
            *pixel = colour;
        }
    }

    fn place(&self, x: u32, y: u32) -> usize {
        y as usize * self.width as usize + x as usize
    }

    /// The picture at another size. Each new pixel takes the colour of the old pixel below its middle.
    pub(crate) fn scaled(&self, width: u32, height: u32) -> Self {
        if self.dimensions() == (width, height) {
            return self.clone();
        }
        let mut scaled = Self::filled(width, height, [0; 4]);
        let below = |at: u32, from: u32, to: u32| {
            let middle = (2 * u64::from(at) + 1) * u64::from(from) / (2 * u64::from(to));
            u32::try_from(middle).unwrap_or(u32::MAX)
        };
        for y in 0..scaled.height {
            let source_y = below(y, self.height, scaled.height);
            for x in 0..scaled.width {
                let source_x = below(x, self.width, scaled.width);
                scaled.set_pixel(x, y, self.pixel(source_x, source_y));
            }
        }
        scaled
    }

    /// Puts another picture on this one, with its upper left corner at this place. Pixels outside of this picture are
    /// left out.
    pub(crate) fn put(&mut self, other: &Self, left: u32, top: u32) {
        for y in 0..other.height {
            for x in 0..other.width {
                self.set_pixel(
                    left.saturating_add(x),
                    top.saturating_add(y),
                    other.pixel(x, y),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Rgba = [255, 0, 0, 255];
    const BLUE: Rgba = [0, 0, 255, 255];

    #[test]
    fn a_scaled_picture_shows_the_same() {
        let mut picture = Raster::filled(4, 2, RED);
        picture.put(&Raster::filled(2, 2, BLUE), 2, 0);
        for (width, height) in [(4, 2), (40, 20), (2, 1), (3, 7)] {
            let scaled = picture.scaled(width, height);
            assert_eq!(scaled.dimensions(), (width, height));
            assert_eq!(scaled.pixel(0, 0), RED);
            assert_eq!(scaled.pixel(width - 1, height - 1), BLUE);
        }
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let mut picture = Raster::filled(3, 3, RED);
        picture.put(&Raster::filled(9, 9, BLUE), 2, 2);
        picture.set_pixel(3, 0, BLUE);
        picture.set_pixel(0, 3, BLUE);
        let blue = picture.pixels().iter().filter(|pixel| **pixel == BLUE);
        assert_eq!(blue.count(), 1);
        assert_eq!(picture.pixel(2, 2), BLUE);
    }
}
