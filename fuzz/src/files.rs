//! Properties of the checks of video and picture files.

use std::io::{Cursor, Read, Result, Seek, SeekFrom};

use protocol::media::{FileError, check_png, check_video};

/// A check ends without a read error, reads little more than four times the bytes of the file, and is
/// deterministic.
pub fn media(data: &[u8]) {
    let (video, video_bytes) = counted(data, |file| check_video(file));
    let (picture, picture_bytes) = counted(data, |file| check_png(file));
    for bytes in [video_bytes, picture_bytes] {
        assert!(
            bytes <= 4 * data.len() + READ_BYTES,
            "{bytes} bytes were read"
        );
    }
    assert!(
        video.is_none() || picture.is_none(),
        "a file is not both a video and a picture"
    );
    if let Some(picture) = picture {
        assert!(picture.width > 0 && picture.height > 0);
        // A PNG ends with its last chunk, so any truncation is detected.
        for length in [0, data.len() / 2, data.len() - 1] {
            let (cut, _) = counted(&data[..length], |file| check_png(file));
            assert_eq!(cut, None, "of {length} bytes");
        }
    }
}

/// A check may fill one buffer more than it needs.
const READ_BYTES: usize = 64 << 10;

fn counted<T: PartialEq + std::fmt::Debug>(
    data: &[u8],
    check: impl Fn(&mut Counted<'_>) -> std::result::Result<T, FileError>,
) -> (Option<T>, usize) {
    let run = || {
        let mut file = Counted {
            file: Cursor::new(data),
            read: 0,
        };
        let found = match check(&mut file) {
            Ok(found) => Some(found),
            Err(FileError::Invalid(_)) => None,
            Err(FileError::Unreadable(error)) => panic!("{error} from a reader that never fails"),
        };
        (found, file.read)
    };
    let first = run();
    assert_eq!(run(), first);
    first
}

/// A file that counts the bytes read from it.
struct Counted<'a> {
    file: Cursor<&'a [u8]>,
    read: usize,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.file.read(buffer)?;
        self.read += read;
        Ok(read)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.file.seek(to)
    }
}
