//! Properties for any bytes: a check ends, and a truncated file is never complete.

use std::io::Cursor;

use proptest::prelude::*;
use protocol::media::{check_png, check_video};

use super::build::{good_png, good_videos};

#[test]
fn a_cut_anywhere_is_seen() {
    for (name, file) in good_videos() {
        for length in 0..file.len() {
            let cut = &file[..length];
            assert!(
                check_video(&mut Cursor::new(cut)).is_err(),
                "{name} {length}"
            );
        }
    }
    let file = good_png();
    for length in 0..file.len() {
        assert!(
            check_png(&mut Cursor::new(&file[..length])).is_err(),
            "{length}"
        );
    }
}

#[test]
fn any_byte_may_be_anything() {
    for (_, mut file) in good_videos() {
        for at in 0..file.len() {
            let before = file[at];
            for value in [0, 1, 7, 8, 0x7f, 0x80, 0xff, before ^ 1] {
                file[at] = value;
                // The result does not matter, only that the check returns.
                let _ = check_video(&mut Cursor::new(&file));
            }
            file[at] = before;
        }
    }
    let mut file = good_png();
    for at in 0..file.len() {
        for value in 0..=u8::MAX {
            let before = std::mem::replace(&mut file[at], value);
            let _ = check_png(&mut Cursor::new(&file));
            file[at] = before;
        }
    }
}

proptest! {
    #[test]
    fn checks_end_on_any_bytes(bytes: Vec<u8>) {
        let _ = check_video(&mut Cursor::new(&bytes));
        let _ = check_png(&mut Cursor::new(&bytes));
    }

    #[test]
    fn checks_end_on_files_that_are_torn(
        which in 0..4_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let (_, mut file) = good_videos().swap_remove(which);
        for (at, value) in edits {
            let at = at.index(file.len());
            file[at] = value;
        }
        file.truncate(cut.index(file.len()) + 1);
        let _ = check_video(&mut Cursor::new(&file));
    }
}
