//! Names, sizes and syncs of the store's files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The path of a file beside the database: `tollgate.db` and `-lock` give `tollgate.db-lock`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Syncs the folder of a file, because a synced file is lost if its name is not synced.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

/// The size of a file in bytes. `None` if it does not exist.
///
/// The file is not opened: closing a database file outside `SQLite` would drop the locks that `SQLite` holds on it in
/// this process.
pub(crate) fn size(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|found| found.len())
}
