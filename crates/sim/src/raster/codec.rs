//! Encodes and decodes pictures.

use std::io::Cursor;

use image_webp::{WebPDecoder, WebPEncoder};
use jpeg_encoder::{ColorType, Encoder as JpegEncoder};
use png::{BitDepth, Compression, Filter, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::Raster;

/// A format of picture files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lossless, with transparency.
    Png,
    /// Lossy, without transparency.
    Jpeg,
    /// Lossless `WebP`, with transparency.
    Webp,
}

impl Format {
    pub(crate) const NAMES: [&str; 3] = ["png", "jpeg", "webp"];

    pub(crate) fn of(name: Option<&str>) -> Self {
        match name {
            Some("jpeg") => Self::Jpeg,
            Some("webp") => Self::Webp,
            _ => Self::Png,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }
}

/// Encodes a picture. `quality` applies to JPEG.
pub fn encode(picture: &Raster, format: Format, quality: u8) -> Vec<u8> {
    let mut file = Vec::new();
    let (width, height) = picture.dimensions();
    // Writing to memory cannot fail, and the simulator's pictures are within the limits of each format.
    match format {
        Format::Png => {
            let size = (width, height);
            let colours = png::ColorType::Rgba;
            let compression = (Compression::Fast, Filter::Sub);
            let _ = write_png(&mut file, size, colours, compression, picture.bytes());
        }
        Format::Jpeg => {
            let encoder = JpegEncoder::new(&mut file, quality.clamp(1, 100));
            let side = |pixels: u32| u16::try_from(pixels).unwrap_or(u16::MAX);
            let _ = encoder.encode(picture.bytes(), side(width), side(height), ColorType::Rgba);
        }
        Format::Webp => {
            let encoder = WebPEncoder::new(&mut file);
            let colours = image_webp::ColorType::Rgba8;
            let _ = encoder.encode(picture.bytes(), width, height, colours);
        }
    }
    file
}

/// Encodes rows of pixels, three bytes each, as a PNG file whose length depends only on the size of the picture.
pub(crate) fn uncompressed_png(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let colours = png::ColorType::Rgb;
    let compression = (Compression::NoCompression, Filter::NoFilter);
    // Writing to memory cannot fail.
    let _ = write_png(&mut file, (width, height), colours, compression, pixels);
    file
}

fn write_png(
    file: &mut Vec<u8>,
    (width, height): (u32, u32),
    colours: png::ColorType,
    (compression, filter): (Compression, Filter),
    pixels: &[u8],
) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(file, width, height);
    encoder.set_color(colours);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(compression);
    encoder.set_filter(filter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()
}

/// Decodes a picture of any supported format.
pub fn decode(file: &[u8]) -> Option<Raster> {
    if file.starts_with(b"\x89PNG") {
        decode_png(file)
    } else if file.starts_with(b"\xff\xd8\xff") {
        decode_jpeg(file)
    } else {
        decode_webp(file)
    }
}

fn decode_png(file: &[u8]) -> Option<Raster> {
    let mut decoder = png::Decoder::new(Cursor::new(file));
    decoder.set_transformations(Transformations::normalize_to_color8() | Transformations::ALPHA);
    let mut reader = decoder.read_info().ok()?;
    let mut bytes = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut bytes).ok()?;
    let bytes = bytes.get(..frame.buffer_size())?;
    let rgba = match frame.color_type {
        png::ColorType::GrayscaleAlpha => {
            let (pixels, _) = bytes.as_chunks();
            let coloured = pixels
                .iter()
                .flat_map(|&[grey, opacity]| [grey, grey, grey, opacity]);
            &coloured.collect::<Vec<u8>>()
        }
        _ => bytes,
    };
    Raster::from_bytes(frame.width, frame.height, rgba)
}

fn decode_jpeg(file: &[u8]) -> Option<Raster> {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGBA);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    let bytes = decoder.decode().ok()?;
    let info = decoder.info()?;
    Raster::from_bytes(info.width.into(), info.height.into(), &bytes)
}

fn decode_webp(file: &[u8]) -> Option<Raster> {
    let mut decoder = WebPDecoder::new(Cursor::new(file)).ok()?;
    let mut bytes = vec![0; decoder.output_buffer_size()?];
    decoder.read_image(&mut bytes).ok()?;
    let (width, height) = decoder.dimensions();
    if decoder.has_alpha() {
        return Raster::from_bytes(width, height, &bytes);
    }
    let (pixels, _) = bytes.as_chunks();
    let opaque = pixels
        .iter()
        .flat_map(|&[red, green, blue]| [red, green, blue, 255]);
    Raster::from_bytes(width, height, &opaque.collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_survive_their_formats() {
        for opacity in [255, 128] {
            let picture = Raster::filled(20, 10, [200, 30, 40, opacity]);
            for (format, magic) in [
                (Format::Png, &b"\x89PNG"[..]),
                (Format::Jpeg, b"\xff\xd8\xff"),
                (Format::Webp, b"RIFF"),
            ] {
                let file = encode(&picture, format, 90);
                assert!(file.starts_with(magic), "{format:?}");
                let back = decode(&file).unwrap();
                assert_eq!(back.dimensions(), (20, 10));
                if format == Format::Jpeg {
                    assert!(back.pixel(5, 5)[0].abs_diff(200) < 8);
                    assert_eq!(back.pixel(5, 5)[3], 255);
                } else {
                    assert_eq!(back, picture, "{format:?}");
                }
            }
        }
        for broken in [
            &b"no picture"[..],
            b"",
            b"\x89PNG",
            b"\xff\xd8\xff",
            b"RIFF",
        ] {
            assert!(decode(broken).is_none());
        }
    }

    #[test]
    fn pictures_without_colour_or_opacity_are_read() {
        for (colours, pixel, expected) in [
            (png::ColorType::Grayscale, &[7][..], [7, 7, 7, 255]),
            (png::ColorType::GrayscaleAlpha, &[7, 9], [7, 7, 7, 9]),
            (png::ColorType::Rgb, &[1, 2, 3], [1, 2, 3, 255]),
        ] {
            let mut file = Vec::new();
            let compression = (Compression::Fast, Filter::NoFilter);
            write_png(&mut file, (1, 1), colours, compression, pixel).unwrap();
            assert_eq!(decode(&file).unwrap().pixel(0, 0), expected, "{colours:?}");
        }
        let mut file = Vec::new();
        let encoder = WebPEncoder::new(&mut file);
        encoder
            .encode(&[1, 2, 3], 1, 1, image_webp::ColorType::Rgb8)
            .unwrap();
        assert_eq!(decode(&file).unwrap().pixel(0, 0), [1, 2, 3, 255]);
    }
}
