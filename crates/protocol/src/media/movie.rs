//! Reads duration and dimensions from the description of a video (`moov`).

use super::boxes::{Boxes, be32, be64, four_bytes};
use super::file_error::Invalid;

/// Limit for the boxes in `moov`, and in each of its boxes.
const CHILDREN_MAX: usize = 1024;
/// `moov` is the first level. Sample tables are on the fifth.
const DEPTH_MAX: usize = 6;
/// Boxes that contain only other boxes, and that are searched.
const CONTAINERS: [[u8; 4]; 6] = [*b"trak", *b"mdia", *b"minf", *b"stbl", *b"mvex", *b"moov"];

/// The values in `moov`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Movie {
    pub(super) timescale: u32,
    /// In units of the timescale, if the file states it.
    pub(super) duration: Option<u64>,
    /// The duration of all fragments, in the same units.
    pub(super) fragments_duration: Option<u64>,
    /// Width and height of the first video track.
    pub(super) dimensions: Option<(u32, u32)>,
}

#[derive(Default)]
struct FoundValues {
    header: Option<(u32, Option<u64>)>,
    fragments_duration: Option<u64>,
    /// The track that is being read.
    track: Track,
    video: Option<Track>,
}

#[derive(Default)]
struct Track {
    is_video: bool,
    dimensions: Option<(u32, u32)>,
}

impl Movie {
    pub(super) fn read(payload: &[u8]) -> Result<Self, Invalid> {
        let mut found = FoundValues::default();
        walk(*b"moov", payload, 1, &mut found)?;
        let (timescale, duration) = found.header.ok_or(Invalid::Missing("mvhd"))?;
        let video = found.video.ok_or(Invalid::Missing("a video track"))?;
        Ok(Self {
            timescale,
            duration,
            fragments_duration: found.fragments_duration,
            dimensions: video.dimensions,
        })
    }
}

fn walk(
    parent: [u8; 4],
    payload: &[u8],
    depth: usize,
    found: &mut FoundValues,
) -> Result<(), Invalid> {
    if depth > DEPTH_MAX {
        return Err(Invalid::TooDeep);
    }
    for child in Boxes::of(payload, CHILDREN_MAX) {
        let (kind, payload) = child?;
        match (&parent, &kind) {
            (b"moov", b"mvhd") => {
                let header = read_header(payload)?;
                if found.header.replace(header).is_some() {
                    return Err(Invalid::Twice("mvhd"));
                }
            }
            (b"moov", b"trak") => {
                found.track = Track::default();
                walk(kind, payload, depth + 1, found)?;
                let track = std::mem::take(&mut found.track);
                if track.is_video && found.video.is_none() {
                    found.video = Some(track);
                }
            }
            (b"trak", b"tkhd") => found.track.dimensions = read_dimensions(payload),
            // `minf` and `meta` have `hdlr` boxes too, which do not describe the track.
            (b"mdia", b"hdlr") => found.track.is_video = four_bytes(payload, 8) == Some(*b"vide"),
            (b"mvex", b"mehd") => found.fragments_duration = read_fragments_duration(payload),
            _ if CONTAINERS.contains(&kind) => walk(kind, payload, depth + 1, found)?,
            _ => {}
        }
    }
    Ok(())
}

/// Timescale and duration of `mvhd`.
fn read_header(payload: &[u8]) -> Result<(u32, Option<u64>), Invalid> {
    let (timescale, duration) = match payload.first() {
        Some(0) => (be32(payload, 12), be32(payload, 16).map(known32)),
        Some(1) => (be32(payload, 20), be64(payload, 24).map(known64)),
        _ => (None, None),
    };
    match (timescale, duration) {
        (Some(timescale @ 1..), Some(duration)) => Ok((timescale, duration)),
        _ => Err(Invalid::Header("mvhd")),
    }
}

fn read_fragments_duration(payload: &[u8]) -> Option<u64> {
    match payload.first()? {
        0 => be32(payload, 4).and_then(known32),
        1 => be64(payload, 4).and_then(known64),
        _ => None,
    }
}

/// The last eight bytes of `tkhd`: two fixed-point numbers with 16 fractional bits.
fn read_dimensions(payload: &[u8]) -> Option<(u32, u32)> {
    let at = payload.len().checked_sub(8)?;
    let (width, height) = (be32(payload, at)? >> 16, be32(payload, at + 4)? >> 16);
    (width > 0 && height > 0).then_some((width, height))
}

/// The duration. `None` if all bits are set, which means that it is unknown.
fn known32(duration: u32) -> Option<u64> {
    (duration != u32::MAX).then(|| duration.into())
}

fn known64(duration: u64) -> Option<u64> {
    (duration != u64::MAX).then_some(duration)
}
