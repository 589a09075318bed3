//! Replaces a file atomically, so that a crash leaves either the old or the new file.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The text of a file, or `None` if the file does not exist.
pub(crate) fn read_if_exists(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The new contents of a file, written and synced beside it. The file itself is unchanged until [`FileDraft::replace`],
/// and dropping a draft removes it.
#[derive(Debug)]
pub(crate) struct FileDraft {
    draft: PathBuf,
    file: PathBuf,
    is_in_place: bool,
}

impl FileDraft {
    /// Writes a new file beside the old one, with the same permissions.
    pub(crate) fn write(file: &Path, text: &str) -> io::Result<Self> {
        // A symbolic link is kept, and its target is replaced.
        let file = fs::canonicalize(file)?;
        let draft = Self {
            draft: beside(&file),
            file,
            is_in_place: false,
        };
        write_draft(&draft.draft, &draft.file, text)?;
        Ok(draft)
    }

    /// Renames the new file to the name of the old one.
    pub(crate) fn replace(self) -> io::Result<()> {
        self.replace_and(|folder| File::open(folder)?.sync_all())
    }

    fn replace_and(mut self, sync: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        fs::rename(&self.draft, &self.file)?;
        self.is_in_place = true;
        // The new file is in place now, and only a power cut can bring back the old one. Returning an error would
        // wrongly say that nothing has changed.
        if let Some(Err(error)) = self.file.parent().map(sync) {
            tracing::warn!(%error, file = %self.file.display(), "the folder of a replaced file could not be synced");
        }
        Ok(())
    }
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        if !self.is_in_place {
            // If this fails, the next change overwrites the draft.
            let _ = fs::remove_file(&self.draft);
        }
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

/// The name of the new file until it replaces the old one.
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
        // A crash before the rename would leave this file.
        fs::write(beside(&file), "half of a much longer file").unwrap();
        assert_eq!(read_if_exists(&link).unwrap().as_deref(), Some("old"));
        FileDraft::write(&link, "new").unwrap().replace().unwrap();
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
        // A folder with the draft's name makes the write fail.
        fs::create_dir(beside(&file)).unwrap();
        assert!(FileDraft::write(&file, "new").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert!(FileDraft::write(&folder.path().join("none"), "new").is_err());
    }

    #[test]
    fn a_draft_that_is_not_used_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.toml");
        fs::write(&file, "old").unwrap();
        drop(FileDraft::write(&file, "new").unwrap());
        assert!(!beside(&file).exists());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    }

    #[test]
    fn a_file_that_is_replaced_and_not_synced_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.toml");
        fs::write(&file, "old").unwrap();
        let draft = FileDraft::write(&file, "new").unwrap();
        let replaced = draft.replace_and(|_| Err(io::ErrorKind::PermissionDenied.into()));
        assert!(replaced.is_ok());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }
}
