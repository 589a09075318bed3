//! PNG: checks the header, then walks over the chunks. Pixels are never decompressed.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::boxes::{be32, four_bytes};
use super::file_error::{FileError, Invalid};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// The header chunk: length, type, thirteen bytes of data, checksum.
const HEADER_BYTES: usize = 25;
/// Length, type and checksum around the bytes of a chunk.
const FRAME_BYTES: u64 = 12;
const END: [u8; 12] = *b"\0\0\0\0IEND\xae\x42\x60\x82";
const SIDE_PIXELS_MAX: u32 = 16_384;
/// The maximum number of chunks. Encoders write chunks of 8 KiB or more, so large files fit.
const CHUNKS_MAX: usize = 65_536;

/// The values that a PNG file declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
}

/// Checks that a file is a complete PNG.
pub fn check_png(file: &mut (impl Read + Seek)) -> Result<Picture, FileError> {
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut file = BufReader::new(file);
    let mut start = [0; SIGNATURE.len() + HEADER_BYTES];
    let mut at = u64::try_from(start.len()).unwrap_or(u64::MAX);
    if end < at {
        return Err(Invalid::Start.into());
    }
    file.read_exact(&mut start)?;
    let (signature, header) = start.split_at(SIGNATURE.len());
    if signature != SIGNATURE {
        return Err(Invalid::Start.into());
    }
    let picture = read_header(header)?;
    let mut has_pixels = false;
    for _ in 0..CHUNKS_MAX {
        let room = end.saturating_sub(at);
        if room < FRAME_BYTES {
            return Err(if room == 0 && has_pixels {
                Invalid::Missing("IEND").into()
            } else {
                Invalid::Truncated.into()
            });
        }
        let mut frame = [0; END.len()];
        file.read_exact(&mut frame)?;
        let length = u64::from(be32(&frame, 0).unwrap_or(u32::MAX));
        // A valid length has at most 31 bits.
        if length >> 31 != 0 {
            return Err(Invalid::Size.into());
        }
        if length + FRAME_BYTES > room {
            return Err(Invalid::Truncated.into());
        }
        match four_bytes(&frame, 4) {
            Some(kind) if kind == *b"IEND" => {
                if frame != END {
                    return Err(Invalid::Header("IEND").into());
                }
                if room > FRAME_BYTES {
                    return Err(Invalid::After.into());
                }
                if !has_pixels {
                    return Err(Invalid::Missing("IDAT").into());
                }
                return Ok(picture);
            }
            Some(kind) if kind == *b"IDAT" => has_pixels |= length > 0,
            Some(kind) if kind == *b"IHDR" => return Err(Invalid::Twice("IHDR").into()),
            _ => {}
        }
        // The twelve bytes read above have the size of a chunk's frame, so only `length` bytes are left
        // to skip.
        file.seek_relative(i64::try_from(length).unwrap_or(i64::MAX))?;
        at += FRAME_BYTES + length;
    }
    Err(Invalid::TooMany.into())
}

fn read_header(header: &[u8]) -> Result<Picture, Invalid> {
    if header.get(..8) != Some(b"\0\0\0\x0dIHDR") {
        return Err(Invalid::Start);
    }
    let checked = header.get(4..21).unwrap_or_default();
    if be32(header, 21) != Some(crc32(checked)) {
        return Err(Invalid::Checksum);
    }
    let side = |at| be32(header, at).filter(|side| (1..=SIDE_PIXELS_MAX).contains(side));
    let (Some(width), Some(height)) = (side(8), side(12)) else {
        return Err(Invalid::Header("IHDR"));
    };
    // Bit depth by colour type, then compression, filter and interlacing.
    match header.get(16..21) {
        Some(
            [1 | 2 | 4 | 8 | 16, 0, 0, 0, 0 | 1]
            | [8 | 16, 2 | 4 | 6, 0, 0, 0 | 1]
            | [1 | 2 | 4 | 8, 3, 0, 0, 0 | 1],
        ) => Ok(Picture { width, height }),
        _ => Err(Invalid::Header("IHDR")),
    }
}

/// The checksum of a chunk's type and bytes. It is computed bit by bit, because only headers are
/// checked.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}
