//! Creates video files that players can open: one picture per second, in an MP4 or MOV container.

use crate::picture;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Mp4,
    Mov,
}

impl Container {
    fn brands(self) -> [&'static [u8]; 5] {
        match self {
            Self::Mp4 => [b"isom", &[0; 4], b"isom", b"iso2", b"mp41"],
            Self::Mov => [b"qt  ", &[0; 4], b"qt  ", b"", b""],
        }
    }
}

const WIDTH: u16 = 64;
const HEIGHT: u16 = 36;
const TIMESCALE: u32 = 1000;

/// Creates an MP4 of this length. Its colours depend on the words.
pub(crate) fn mp4(seconds: u64, words: &str) -> Vec<u8> {
    file_in(Container::Mp4, seconds, words)
}

/// Creates a video of this length in the given container. Its colours depend on the words.
pub(crate) fn file_in(container: Container, seconds: u64, words: &str) -> Vec<u8> {
    let frames: Vec<Vec<u8>> = (0..seconds).map(|second| frame(second, words)).collect();
    let kind = atom(*b"ftyp", &container.brands());
    let media = atom(*b"mdat", &[&frames.concat()]);
    let first = length(kind.len() + 8);
    [kind, media, movie(&frames, first)].concat()
}

/// The picture for one second of the video, as PNG.
pub(crate) fn frame(second: u64, words: &str) -> Vec<u8> {
    let words = format!("{words} {second}");
    picture::png(WIDTH.into(), HEIGHT.into(), &words)
}

fn movie(frames: &[Vec<u8>], first: u32) -> Vec<u8> {
    let duration = length(frames.len()).saturating_mul(TIMESCALE).to_be_bytes();
    let scale = TIMESCALE.to_be_bytes();
    let matrix = matrix();
    let head = full_atom(
        *b"mvhd",
        0,
        &[
            &[0; 8],
            &scale,
            &duration,
            &0x0001_0000_u32.to_be_bytes(),
            &0x0100_u16.to_be_bytes(),
            &[0; 10],
            &matrix,
            &[0; 24],
            &2_u32.to_be_bytes(),
        ],
    );
    let fixed = |size: u16| (u32::from(size) << 16).to_be_bytes();
    let track_head = full_atom(
        *b"tkhd",
        3,
        &[
            &[0; 8],
            &1_u32.to_be_bytes(),
            &[0; 4],
            &duration,
            &[0; 16],
            &matrix,
            &fixed(WIDTH),
            &fixed(HEIGHT),
        ],
    );
    // The language code 0x55c4 is "und" (undetermined).
    let media_head = full_atom(
        *b"mdhd",
        0,
        &[&[0; 8], &scale, &duration, &[0x55, 0xc4, 0, 0]],
    );
    let handler = full_atom(*b"hdlr", 0, &[&[0; 4], b"vide", &[0; 12], b"film\0"]);
    let place = full_atom(
        *b"dref",
        0,
        &[&1_u32.to_be_bytes(), &full_atom(*b"url ", 1, &[])],
    );
    let information = atom(
        *b"minf",
        &[
            &full_atom(*b"vmhd", 1, &[&[0; 8]]),
            &atom(*b"dinf", &[&place]),
            &samples(frames, first),
        ],
    );
    let media = atom(*b"mdia", &[&media_head, &handler, &information]);
    atom(*b"moov", &[&head, &atom(*b"trak", &[&track_head, &media])])
}

/// The sample tables: the position, size and duration of each picture.
fn samples(frames: &[Vec<u8>], first: u32) -> Vec<u8> {
    let one = 1_u32.to_be_bytes();
    let count = length(frames.len()).to_be_bytes();
    let resolution = 0x0048_0000_u32.to_be_bytes();
    let entry = atom(
        *b"png ",
        &[
            &[0; 6],
            &1_u16.to_be_bytes(),
            &[0; 16],
            &WIDTH.to_be_bytes(),
            &HEIGHT.to_be_bytes(),
            &resolution,
            &resolution,
            &[0; 4],
            &1_u16.to_be_bytes(),
            &[0; 32],
            &24_u16.to_be_bytes(),
            &[0xff, 0xff],
        ],
    );
    let sizes: Vec<u8> = frames
        .iter()
        .flat_map(|frame| length(frame.len()).to_be_bytes())
        .collect();
    atom(
        *b"stbl",
        &[
            &full_atom(*b"stsd", 0, &[&one, &entry]),
            &full_atom(*b"stts", 0, &[&one, &count, &TIMESCALE.to_be_bytes()]),
            &full_atom(*b"stsc", 0, &[&one, &one, &count, &one]),
            &full_atom(*b"stsz", 0, &[&[0; 4], &count, &sizes]),
            &full_atom(*b"stco", 0, &[&one, &first.to_be_bytes()]),
        ],
    )
}

/// The identity transformation matrix.
fn matrix() -> Vec<u8> {
    [0x0001_0000_u32, 0, 0, 0, 0x0001_0000, 0, 0, 0, 0x4000_0000]
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect()
}

fn atom(kind: [u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let size = length(content.len() + 8).to_be_bytes();
    [&size[..], &kind, &content].concat()
}

/// An atom that begins with version 0 and flags.
fn full_atom(kind: [u8; 4], flags: u32, parts: &[&[u8]]) -> Vec<u8> {
    atom(kind, &[&flags.to_be_bytes(), &parts.concat()])
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_film_is_as_long_as_it_says_and_its_pictures_stand_where_it_says() {
        let video = mp4(3, "a red boat");
        let at = |name: &[u8]| video.windows(4).position(|four| four == name).unwrap();
        let number = |place: usize| u32::from_be_bytes(video[place..place + 4].try_into().unwrap());
        let head = at(b"mvhd") + 4;
        assert_eq!((number(head + 12), number(head + 16)), (1000, 3000));
        let first = usize::try_from(number(at(b"stco") + 12)).unwrap();
        assert_eq!(&video[first..first + 8], b"\x89PNG\r\n\x1a\n");
        // The top-level atoms follow each other without gaps.
        let mut place = 0;
        let mut kinds = Vec::new();
        while place < video.len() {
            kinds.push(video[place + 4..place + 8].to_vec());
            place += usize::try_from(number(place)).unwrap();
        }
        assert_eq!(place, video.len());
        assert_eq!(kinds, [b"ftyp", b"mdat", b"moov"]);
    }
}
