//! Detects changes of a file by its modification time and size.

use std::path::Path;
use std::time::SystemTime;

/// The modification time and the size of a file. A changed file has a different stamp.
pub type FileStamp = (SystemTime, u64);

/// The stamp of a file. `None` if the file does not exist or its metadata cannot be read.
pub fn file_stamp(file: &Path) -> Option<FileStamp> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
