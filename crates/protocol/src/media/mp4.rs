//! MP4 and MOV: walks over the boxes of a file and skips the media.

use std::io::{self, Read, Seek, SeekFrom};

use super::boxes::{BoxHead, HEADER_BYTES_MAX, four_bytes};
use super::file_error::{FileError, Invalid};
use super::movie::Movie;

/// Limit for boxes on the first level. A fragmented video of an hour has fewer.
const TOP_BOXES_MAX: usize = 4096;
/// The size of `ftyp` with its header.
const TYPE_BYTES: std::ops::RangeInclusive<u64> = 16..=4096;
/// Limit for the description. The description of a clip takes some tens of KiB.
const MOVIE_BYTES_MAX: u64 = 16 << 20;

const MOV_BRAND: [u8; 4] = *b"qt  ";
const MP4_BRANDS: [[u8; 4]; 11] = [
    *b"isom", *b"iso2", *b"iso3", *b"iso4", *b"iso5", *b"iso6", *b"mp41", *b"mp42", *b"avc1",
    *b"M4V ", *b"dash",
];

/// The values that a video file declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Video {
    pub container: Container,
    /// `None` if the file does not state it, as some fragmented files do not.
    pub duration_ms: Option<u64>,
    /// Width and height in pixels.
    pub dimensions: Option<(u32, u32)>,
}

/// The container format of a video file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    Mp4,
    Mov,
}

/// The boxes found on the first level so far.
#[derive(Default)]
struct FoundBoxes {
    container: Option<Container>,
    movie: Option<Movie>,
    has_media: bool,
    has_fragments: bool,
}

/// Checks that a file is a complete video: with a type, a description, a video track and media.
///
/// Reads headers and the description, and skips the media.
pub fn check_video(file: &mut (impl Read + Seek)) -> Result<Video, FileError> {
    let end = file.seek(SeekFrom::End(0))?;
    let mut found = FoundBoxes::default();
    let mut at = 0;
    let mut boxes_left = TOP_BOXES_MAX;
    while at < end {
        boxes_left = boxes_left.checked_sub(1).ok_or(Invalid::TooMany)?;
        let head = read_head(file, at, end)?;
        take(file, at, head, &mut found)?;
        // A header is at least eight bytes, so the walk ends.
        at = at.saturating_add(head.bytes);
    }
    Ok(found.conclude()?)
}

fn take(
    file: &mut (impl Read + Seek),
    at: u64,
    head: BoxHead,
    found: &mut FoundBoxes,
) -> Result<(), FileError> {
    if found.container.is_none() {
        if head.kind != *b"ftyp" {
            return Err(Invalid::Start.into());
        }
        if !TYPE_BYTES.contains(&head.bytes) {
            return Err(Invalid::Size.into());
        }
        let brands = read_payload(file, at, head)?;
        found.container = Some(container_of(&brands).ok_or(Invalid::Brand)?);
        return Ok(());
    }
    match &head.kind {
        b"ftyp" => return Err(Invalid::Twice("ftyp").into()),
        b"moov" => {
            if head.bytes > MOVIE_BYTES_MAX {
                return Err(Invalid::TooLarge.into());
            }
            let movie = Movie::read(&read_payload(file, at, head)?)?;
            if found.movie.replace(movie).is_some() {
                return Err(Invalid::Twice("moov").into());
            }
        }
        b"mdat" => found.has_media |= head.bytes > head.header_bytes,
        b"moof" => found.has_fragments = true,
        _ => {}
    }
    Ok(())
}

impl FoundBoxes {
    fn conclude(self) -> Result<Video, Invalid> {
        let container = self.container.ok_or(Invalid::Start)?;
        let movie = self.movie.ok_or(Invalid::Missing("moov"))?;
        if !self.has_media {
            return Err(Invalid::Missing("mdat"));
        }
        // The header of a fragmented file states only the duration of the media before the first
        // fragment. If there is none, that duration is 0.
        let known = movie
            .duration
            .filter(|duration| *duration > 0 || !self.has_fragments);
        let duration = known.or(movie.fragments_duration);
        Ok(Video {
            container,
            duration_ms: duration.map(|units| millis(units, movie.timescale)),
            dimensions: movie.dimensions,
        })
    }
}

fn millis(units: u64, timescale: u32) -> u64 {
    let millis = u128::from(units) * 1000 / u128::from(timescale.max(1));
    u64::try_from(millis).unwrap_or(u64::MAX)
}

/// Derives the container from the major brand, or from a compatible brand.
fn container_of(payload: &[u8]) -> Option<Container> {
    let major = four_bytes(payload, 0)?;
    let compatible = payload.get(8..)?.as_chunks::<4>().0;
    if major == MOV_BRAND {
        Some(Container::Mov)
    } else if MP4_BRANDS.contains(&major) || compatible.iter().any(|it| MP4_BRANDS.contains(it)) {
        Some(Container::Mp4)
    } else {
        compatible.contains(&MOV_BRAND).then_some(Container::Mov)
    }
}

fn read_head(file: &mut (impl Read + Seek), at: u64, end: u64) -> Result<BoxHead, FileError> {
    let room = end.saturating_sub(at);
    let mut bytes = [0; HEADER_BYTES_MAX];
    let length = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
    let head = bytes.get_mut(..length).unwrap_or_default();
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(head)?;
    Ok(BoxHead::read(head, room)?)
}

/// Reads the payload of a box whose size the caller has checked.
fn read_payload(
    file: &mut (impl Read + Seek),
    at: u64,
    head: BoxHead,
) -> Result<Vec<u8>, FileError> {
    let length = head.bytes - head.header_bytes;
    let mut payload = Vec::new();
    file.seek(SeekFrom::Start(at.saturating_add(head.header_bytes)))?;
    file.by_ref().take(length).read_to_end(&mut payload)?;
    if u64::try_from(payload.len()) != Ok(length) {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(payload)
}
