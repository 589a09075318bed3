//! Replaces a file as a whole, so that a crash leaves the old or the new one.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The text of a file, or `None` if there is no such file.
pub(crate) fn read_if_exists(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the contents of a file: writes a new file beside it, syncs it and gives it the old one's name and
/// permissions. Until the rename the old file is untouched.
pub(crate) fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    // A link stays a link: its target is replaced.
    let file = fs::canonicalize(file)?;
    let draft = beside(&file);
    let written = write_draft(&draft, &file, text).and_then(|()| fs::rename(&draft, &file));
    if let Err(error) = written {
        // A draft that is left over is overwritten by the next change.
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    match file.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn write_draft(draft: &Path, file: &Path, text: &str) -> io::Result<()> {
    let permissions = fs::metadata(file)?.permissions();
    let mut options = OpenOptions::new();
    let mut out = options
        .write(true)
        .create(true)
        .truncate(true)
        .open(draft)?;
    out.set_permissions(permissions)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()
}

/// The new file's name until it replaces the old one.
fn beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(".new");
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_through_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (
            folder.path().join("t.toml"),
            folder.path().join("link.toml"),
        );
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        // A crash before the rename has left this one.
        fs::write(beside(&file), "half of a much longer file").unwrap();
        assert_eq!(read_if_exists(&link).unwrap().as_deref(), Some("old"));
        replace_file(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(!beside(&file).exists());
        assert_eq!(read_if_exists(&folder.path().join("none")).unwrap(), None);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.toml");
        fs::write(&file, "old").unwrap();
        // The name of the new file is taken by a folder.
        fs::create_dir(beside(&file)).unwrap();
        assert!(replace_file(&file, "new").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert!(replace_file(&folder.path().join("none"), "new").is_err());
    }
}
