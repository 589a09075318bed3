//! Tests of files that are valid PNG images, and of files that are not.

use std::io::Cursor;

use protocol::media::{FileError, Invalid, Picture, check_png};

use super::build::{chunk, good_png, ihdr, png};

fn check(file: &[u8]) -> Result<Picture, Invalid> {
    check_png(&mut Cursor::new(file)).map_err(|fault| match fault {
        FileError::Invalid(bad) => bad,
        FileError::Unreadable(error) => panic!("{error}"),
    })
}

const SMALL: Picture = Picture {
    width: 2,
    height: 3,
};

#[test]
fn a_complete_picture_has_its_dimensions() {
    assert_eq!(check(&good_png()), Ok(SMALL));
}

#[test]
fn depths_go_with_colour_types() {
    let legal: [(u8, &[u8]); 5] = [
        (0, &[1, 2, 4, 8, 16]),
        (2, &[8, 16]),
        (3, &[1, 2, 4, 8]),
        (4, &[8, 16]),
        (6, &[8, 16]),
    ];
    for colour in 0..=7 {
        for depth in 0..=17 {
            let file = png(&[
                ihdr(depth, colour),
                chunk(b"IDAT", b"x"),
                chunk(b"IEND", b""),
            ]);
            let is_legal = legal
                .iter()
                .any(|(c, depths)| *c == colour && depths.contains(&depth));
            let expected = if is_legal {
                Ok(SMALL)
            } else {
                Err(Invalid::Header("IHDR"))
            };
            assert_eq!(check(&file), expected, "depth {depth}, colour {colour}");
        }
    }
}

#[test]
fn incomplete_pictures_are_refused() {
    let end = || chunk(b"IEND", b"");
    let pixels = || chunk(b"IDAT", b"x");
    let header = |bytes: [u8; 13]| png(&[chunk(b"IHDR", &bytes), pixels(), end()]);
    let mut bad_crc = good_png();
    bad_crc[29] ^= 1;
    let mut bad_end = good_png();
    *bad_end.last_mut().unwrap() ^= 1;
    for (name, file, expected) in [
        ("nothing", vec![], Invalid::Start),
        (
            "text",
            b"not found, not found, not found, not found".to_vec(),
            Invalid::Start,
        ),
        ("signature alone", png(&[]), Invalid::Start),
        (
            "another first chunk",
            png(&[chunk(b"gAMA", &[0; 13]), end()]),
            Invalid::Start,
        ),
        ("bad checksum", bad_crc, Invalid::Checksum),
        (
            "no width",
            header([0, 0, 0, 0, 0, 0, 0, 3, 8, 2, 0, 0, 0]),
            Invalid::Header("IHDR"),
        ),
        (
            "too high",
            header([0, 0, 0, 2, 0, 0, 0x40, 1, 8, 2, 0, 0, 0]),
            Invalid::Header("IHDR"),
        ),
        (
            "compression 1",
            header([0, 0, 0, 2, 0, 0, 0, 3, 8, 2, 1, 0, 0]),
            Invalid::Header("IHDR"),
        ),
        (
            "filter 1",
            header([0, 0, 0, 2, 0, 0, 0, 3, 8, 2, 0, 1, 0]),
            Invalid::Header("IHDR"),
        ),
        (
            "interlace 2",
            header([0, 0, 0, 2, 0, 0, 0, 3, 8, 2, 0, 0, 2]),
            Invalid::Header("IHDR"),
        ),
        (
            "no pixels",
            png(&[ihdr(8, 2), end()]),
            Invalid::Missing("IDAT"),
        ),
        (
            "empty pixels",
            png(&[ihdr(8, 2), chunk(b"IDAT", b""), end()]),
            Invalid::Missing("IDAT"),
        ),
        (
            "no end",
            png(&[ihdr(8, 2), pixels()]),
            Invalid::Missing("IEND"),
        ),
        ("bad end", bad_end, Invalid::Header("IEND")),
        (
            "two headers",
            png(&[ihdr(8, 2), ihdr(8, 2), pixels(), end()]),
            Invalid::Twice("IHDR"),
        ),
        (
            "more behind the end",
            png(&[ihdr(8, 2), pixels(), end(), vec![0]]),
            Invalid::After,
        ),
        (
            "a chunk of 2 GiB",
            png(&[ihdr(8, 2), b"\x80\0\0\0IDAT\0\0\0\0".to_vec()]),
            Invalid::Size,
        ),
        (
            "a chunk that is cut",
            png(&[ihdr(8, 2), b"\0\0\0\x09IDATxxxx".to_vec()]),
            Invalid::Truncated,
        ),
        (
            "endless chunks",
            png(&[
                ihdr(8, 2),
                chunk(b"tEXt", b"").repeat(65_536),
                pixels(),
                end(),
            ]),
            Invalid::TooMany,
        ),
    ] {
        assert_eq!(check(&file), Err(expected), "{name}");
    }
}
