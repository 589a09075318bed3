//! Room on a disk.

use std::io;
use std::path::Path;

/// Bytes that an ordinary process can still write into a folder.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
