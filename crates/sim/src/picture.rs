//! Small PNG pictures whose colours depend on the given words.

use crate::seed::Seed;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Three channels of eight bits.
const FORMAT: [u8; 5] = [8, 2, 0, 0, 0];
/// The size limit of one uncompressed block.
const BLOCK_BYTES_MAX: usize = 65_535;
const ADLER_BASE: u32 = 65_521;

/// A picture of this size. Equal words give equal pictures.
pub(crate) fn png(width: u32, height: u32, words: &str) -> Vec<u8> {
    let mut picture = SIGNATURE.to_vec();
    let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &FORMAT].concat();
    chunk(&mut picture, *b"IHDR", &head);
    chunk(&mut picture, *b"IDAT", &zlib(&rows(width, height, words)));
    chunk(&mut picture, *b"IEND", &[]);
    picture
}

/// Coloured stripes; each row begins with its filter byte.
fn rows(width: u32, height: u32, words: &str) -> Vec<u8> {
    let mut seed = Seed::of(&[words.as_bytes()]);
    let mut row = || {
        let [red, green, blue, ..] = seed.next().to_le_bytes();
        let pixels = (0..width).flat_map(move |_| [red, green, blue]);
        std::iter::once(0).chain(pixels)
    };
    (0..height).flat_map(|_| row()).collect()
}

fn chunk(picture: &mut Vec<u8>, kind: [u8; 4], content: &[u8]) {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    picture.extend_from_slice(&length.to_be_bytes());
    let checked = [&kind[..], content].concat();
    picture.extend_from_slice(&checked);
    picture.extend_from_slice(&crc32(&checked).to_be_bytes());
}

/// A zlib stream of uncompressed blocks.
fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = bytes.chunks(BLOCK_BYTES_MAX).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend_from_slice(&length.to_le_bytes());
        stream.extend_from_slice(&(!length).to_le_bytes());
        stream.extend_from_slice(block);
    }
    let (first, second) = bytes.iter().fold((1, 0), |(first, second), byte| {
        let first = (first + u32::from(*byte)) % ADLER_BASE;
        (first, (second + first) % ADLER_BASE)
    });
    stream.extend_from_slice(&(second << 16 | first).to_be_bytes());
    stream
}

fn crc32(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    });
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let stream = zlib(b"Wikipedia");
        assert_eq!(
            stream.get(stream.len() - 4..),
            Some(&[0x11, 0xe6, 0x03, 0x98][..])
        );
    }

    #[test]
    fn a_picture_tells_its_size_and_depends_on_the_words() {
        let picture = png(16, 9, "a cat");
        assert!(picture.starts_with(SIGNATURE));
        assert_eq!(picture.get(16..24), Some(&[0, 0, 0, 16, 0, 0, 0, 9][..]));
        assert!(picture.ends_with(b"IEND\xae\x42\x60\x82"));
        assert_eq!(picture, png(16, 9, "a cat"));
        assert_ne!(picture, png(16, 9, "a dog"));
    }
}
