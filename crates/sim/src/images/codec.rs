//! Encodes and decodes pictures.

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::codecs::webp::WebPEncoder;
use image::{DynamicImage, ExtendedColorType, ImageEncoder, RgbaImage};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Png,
    Jpeg,
    Webp,
}

impl Format {
    pub(super) const NAMES: [&str; 3] = ["png", "jpeg", "webp"];

    pub(super) fn of(name: Option<&str>) -> Self {
        match name {
            Some("jpeg") => Self::Jpeg,
            Some("webp") => Self::Webp,
            _ => Self::Png,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }
}

/// Encodes a picture. `quality` applies to JPEG.
pub(super) fn encode(picture: &RgbaImage, format: Format, quality: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (width, height) = picture.dimensions();
    let colour = ExtendedColorType::Rgba8;
    // Writing to memory cannot fail, and the pixel buffer has the size that is passed.
    let _ = match format {
        Format::Png => {
            let encoder =
                PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Sub);
            encoder.write_image(picture.as_raw(), width, height, colour)
        }
        Format::Jpeg => {
            let opaque = DynamicImage::ImageRgba8(picture.clone()).into_rgb8();
            JpegEncoder::new_with_quality(&mut bytes, quality.clamp(1, 100)).encode_image(&opaque)
        }
        Format::Webp => WebPEncoder::new_lossless(&mut bytes).write_image(
            picture.as_raw(),
            width,
            height,
            colour,
        ),
    };
    bytes
}

/// Decodes a picture of any supported format.
pub(super) fn decode(bytes: &[u8]) -> Option<RgbaImage> {
    Some(image::load_from_memory(bytes).ok()?.into_rgba8())
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgba;

    #[test]
    fn pictures_survive_their_formats() {
        let picture = RgbaImage::from_pixel(20, 10, Rgba([200, 30, 40, 255]));
        for (format, magic) in [
            (Format::Png, &b"\x89PNG"[..]),
            (Format::Jpeg, b"\xff\xd8\xff"),
            (Format::Webp, b"RIFF"),
        ] {
            let bytes = encode(&picture, format, 90);
            assert!(bytes.starts_with(magic), "{format:?}");
            let back = decode(&bytes).unwrap();
            assert_eq!(back.dimensions(), (20, 10));
            assert!(back.get_pixel(5, 5)[0].abs_diff(200) < 8);
        }
        assert!(decode(b"no picture").is_none());
    }
}
