//! Checks the free disk space.

use std::io;
use std::path::Path;

/// The number of bytes that an unprivileged process can still write to a folder.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Fails with `StorageFull` if less than twice the floor is left. Writes that can be postponed stop there, so that the
/// ledger, which may be on the same disk, still has room.
pub(crate) fn require_room(folder: &Path, disk_floor_bytes: u64) -> io::Result<()> {
    let needed = disk_floor_bytes.saturating_mul(2);
    if needed > 0 && free_bytes(folder)? < needed {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}
