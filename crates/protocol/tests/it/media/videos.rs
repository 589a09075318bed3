//! Tests of files that are valid videos, and of files that are not.

use std::io::Cursor;

use protocol::media::{Container, FileError, Invalid, Video, check_video};

use super::build::{
    boxed, boxed_64, eight_seconds, ftyp, good_videos, isom, mdat, moov, mvex, mvhd, mvhd_64, trak,
};

fn check(file: &[Vec<u8>]) -> Result<Video, Invalid> {
    check_video(&mut Cursor::new(file.concat())).map_err(|fault| match fault {
        FileError::Invalid(bad) => bad,
        FileError::Unreadable(error) => panic!("{error}"),
    })
}

const CLIP: Video = Video {
    container: Container::Mp4,
    duration_ms: Some(8000),
    dimensions: Some((1280, 720)),
};

#[test]
fn complete_videos_have_a_duration_and_dimensions() {
    for (name, file) in good_videos() {
        assert_eq!(check(&[file]), Ok(CLIP), "{name}");
    }
}

#[test]
fn a_duration_is_found_wherever_the_file_keeps_it() {
    let vide = || trak(b"vide", 1280, 720);
    let moof = || boxed(b"moof", b"");
    for (name, moov, fragments, duration_ms) in [
        (
            "version 1",
            moov(&[mvhd_64(90_000, 720_000), vide()]),
            vec![],
            Some(8000),
        ),
        (
            "rounded down",
            moov(&[mvhd(3, 10), vide()]),
            vec![],
            Some(3333),
        ),
        (
            "longer than a day",
            moov(&[mvhd_64(1, 100_000), vide()]),
            vec![],
            Some(100_000_000),
        ),
        (
            "beyond counting",
            moov(&[mvhd_64(1, u64::MAX - 1), vide()]),
            vec![],
            Some(u64::MAX),
        ),
        (
            "all ones",
            moov(&[mvhd(1000, u32::MAX), vide()]),
            vec![],
            None,
        ),
        (
            "all ones in 64 bits",
            moov(&[mvhd_64(1000, u64::MAX), vide()]),
            vec![],
            None,
        ),
        (
            "all ones, told by mehd",
            moov(&[mvhd(1000, u32::MAX), mvex(5), vide()]),
            vec![],
            Some(5),
        ),
        ("zero", moov(&[mvhd(1000, 0), vide()]), vec![], Some(0)),
        (
            "zero before fragments",
            moov(&[mvhd(1000, 0), vide()]),
            moof(),
            None,
        ),
        (
            "mehd does not know",
            moov(&[mvhd(1000, 0), mvex(u32::MAX), vide()]),
            moof(),
            None,
        ),
    ] {
        let found = check(&[isom(), moov, fragments, mdat()]).unwrap();
        assert_eq!(found.duration_ms, duration_ms, "{name}");
    }
}

#[test]
fn brands_identify_the_container() {
    for (major, compatible, expected) in [
        (b"isom", &[][..], Ok(Container::Mp4)),
        (b"mp42", &[b"isom"], Ok(Container::Mp4)),
        (b"dash", &[], Ok(Container::Mp4)),
        (b"M4V ", &[], Ok(Container::Mp4)),
        (b"3gp5", &[b"isom"], Ok(Container::Mp4)),
        (b"isom", &[b"qt  "], Ok(Container::Mp4)),
        (b"qt  ", &[], Ok(Container::Mov)),
        (b"qt  ", &[b"isom"], Ok(Container::Mov)),
        (b"XAVC", &[b"qt  "], Ok(Container::Mov)),
        (b"M4A ", &[], Err(Invalid::Brand)),
        (b"heic", &[b"mif1"], Err(Invalid::Brand)),
        (b"avif", &[], Err(Invalid::Brand)),
        (b"3gp5", &[b"3gp4"], Err(Invalid::Brand)),
    ] {
        let major: &[u8; 4] = major;
        let compatible: Vec<&[u8; 4]> = compatible.to_vec();
        // Without a compatible brand the box has its minimum size.
        let found = check(&[ftyp(major, &compatible), eight_seconds(), mdat()]);
        assert_eq!(
            found.map(|video| video.container),
            expected,
            "{major:?} {compatible:?}"
        );
    }
}

#[test]
fn a_video_track_may_have_no_size() {
    let moov = moov(&[mvhd(1000, 8000), trak(b"vide", 0, 0)]);
    let found = check(&[isom(), moov, mdat()]).unwrap();
    assert_eq!(found.dimensions, None);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn incomplete_videos_are_refused() {
    let vide = || trak(b"vide", 1280, 720);
    let nested = |depth: usize| {
        let inner = (0..depth).fold(Vec::new(), |inner, _| boxed(b"minf", &inner));
        moov(&[mvhd(1000, 8000), vide(), inner])
    };
    let with_header = |header| check(&[isom(), moov(&[header, vide()]), mdat()]);
    let many = |count, kind| boxed(kind, b"").repeat(count);
    let table = [
        ("nothing", check(&[]), Invalid::Start),
        (
            "HTML",
            check(&[b"<!doctype html><html></html>".to_vec()]),
            Invalid::Truncated,
        ),
        (
            "JSON",
            check(&[br#"{"error":{"code":404}}"#.to_vec()]),
            Invalid::Truncated,
        ),
        (
            "seven bytes",
            check(&[b"\0\0\0\x18fty".to_vec()]),
            Invalid::Truncated,
        ),
        ("ftyp alone", check(&[isom()]), Invalid::Missing("moov")),
        (
            "ftyp second",
            check(&[boxed(b"free", b""), isom()]),
            Invalid::Start,
        ),
        (
            "ftyp twice",
            check(&[isom(), isom()]),
            Invalid::Twice("ftyp"),
        ),
        (
            "ftyp without brand",
            check(&[boxed(b"ftyp", b"isom")]),
            Invalid::Size,
        ),
        (
            "endless ftyp",
            check(&[boxed(b"ftyp", &[0; 4096])]),
            Invalid::Size,
        ),
        (
            "no moov",
            check(&[isom(), mdat()]),
            Invalid::Missing("moov"),
        ),
        (
            "two moov",
            check(&[isom(), eight_seconds(), eight_seconds()]),
            Invalid::Twice("moov"),
        ),
        (
            "no mdat",
            check(&[isom(), eight_seconds()]),
            Invalid::Missing("mdat"),
        ),
        (
            "empty mdat",
            check(&[isom(), eight_seconds(), boxed(b"mdat", b"")]),
            Invalid::Missing("mdat"),
        ),
        (
            "empty mdat of 64 bits",
            check(&[isom(), eight_seconds(), boxed_64(b"mdat", b"")]),
            Invalid::Missing("mdat"),
        ),
        (
            "sound alone",
            check(&[
                isom(),
                moov(&[mvhd(1000, 8000), trak(b"soun", 0, 0)]),
                mdat(),
            ]),
            Invalid::Missing("a video track"),
        ),
        (
            "no mvhd",
            check(&[isom(), moov(&[vide()]), mdat()]),
            Invalid::Missing("mvhd"),
        ),
        (
            "two mvhd",
            check(&[isom(), moov(&[mvhd(1, 1), mvhd(1, 1), vide()]), mdat()]),
            Invalid::Twice("mvhd"),
        ),
        (
            "timescale 0",
            with_header(mvhd(0, 8000)),
            Invalid::Header("mvhd"),
        ),
        (
            "mvhd of version 2",
            with_header(boxed(b"mvhd", &[2; 112])),
            Invalid::Header("mvhd"),
        ),
        (
            "short mvhd",
            with_header(boxed(b"mvhd", &[0; 19])),
            Invalid::Header("mvhd"),
        ),
        (
            "too deep",
            check(&[isom(), nested(6), mdat()]),
            Invalid::TooDeep,
        ),
        (
            "too many boxes",
            check(&[isom(), many(4096, b"free")]),
            Invalid::TooMany,
        ),
        (
            "too many children",
            check(&[isom(), moov(&[many(1025, b"free")]), mdat()]),
            Invalid::TooMany,
        ),
        (
            "endless moov",
            check(&[isom(), boxed(b"moov", &vec![0; 16 << 20]), mdat()]),
            Invalid::TooLarge,
        ),
        (
            "a child that leaves its parent",
            check(&[isom(), boxed(b"moov", b"\0\0\0\xffmvhd"), mdat()]),
            Invalid::Truncated,
        ),
    ];
    for (name, found, expected) in table {
        assert_eq!(found, Err(expected), "{name}");
    }
    assert_eq!(check(&[isom(), nested(5), mdat()]), Ok(CLIP));
}

#[test]
fn a_last_box_may_reach_to_the_end() {
    let mut media = mdat();
    media[..4].fill(0);
    assert_eq!(check(&[isom(), eight_seconds(), media]), Ok(CLIP));
}
