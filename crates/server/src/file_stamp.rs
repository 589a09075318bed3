//! Tells whether a file has changed.

use std::path::Path;
use std::time::SystemTime;

/// Differs whenever the file has changed: its time and its size.
pub(crate) type FileStamp = (SystemTime, u64);

/// The stamp of a file. `None` if there is no file.
pub(crate) fn file_stamp(file: &Path) -> Option<FileStamp> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
