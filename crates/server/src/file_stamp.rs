//! Detects changes of a file.

use std::path::Path;
use std::time::SystemTime;

/// The modification time and the size of a file, which differ if the file has changed.
pub(crate) type FileStamp = (SystemTime, u64);

/// The stamp of a file. `None` if there is no file.
pub(crate) fn file_stamp(file: &Path) -> Option<FileStamp> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
