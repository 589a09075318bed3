//! Prepares files in a hidden folder and then moves them to their places, so that a failure leaves nothing behind.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir};

/// A hidden folder beside the configuration. Dropping this removes the folder.
#[derive(Debug)]
pub(super) struct Staging {
    folder: TempDir,
}

impl Staging {
    /// Creates the folder beside the configuration, so that the files can be renamed into place. Data cannot be renamed
    /// to another file system.
    pub(super) fn beside(config: &Path) -> io::Result<Self> {
        let parent = match config.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let folder = tempfile::Builder::new()
            .prefix(".tollgate-init-")
            .tempdir_in(parent)?;
        Ok(Self { folder })
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Moves the data and the configuration to their places, without overwriting anything. If one move fails, the other
    /// is undone.
    pub(super) fn publish(self, data: &Path, config: &Path, text: &str) -> io::Result<()> {
        let mut file = NamedTempFile::new_in(self.folder.path())?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        if data.exists() {
            return Err(taken(data));
        }
        fs::rename(self.data(), data)?;
        if let Err(error) = file.persist_noclobber(config) {
            fs::rename(data, self.data())?;
            return Err(match error.error.kind() {
                io::ErrorKind::AlreadyExists => taken(config),
                _ => error.error,
            });
        }
        Ok(())
    }
}

fn taken(path: &Path) -> io::Error {
    let message = format!("{} exists already", path.display());
    io::Error::new(io::ErrorKind::AlreadyExists, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn prepared(folder: &Path) -> Staging {
        let staging = Staging::beside(&folder.join("t.toml")).unwrap();
        fs::create_dir(staging.data()).unwrap();
        fs::write(staging.data().join("t.db"), "rows").unwrap();
        staging
    }

    #[test]
    fn everything_appears_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let staging = prepared(path);
        staging
            .publish(&path.join("data"), &path.join("t.toml"), "text")
            .unwrap();
        assert_eq!(names(path), ["data", "t.toml"]);
        assert_eq!(fs::read_to_string(path.join("t.toml")).unwrap(), "text");
        assert_eq!(fs::read_to_string(path.join("data/t.db")).unwrap(), "rows");
    }

    #[test]
    fn what_exists_is_kept_and_nothing_else_appears() {
        for (existing, is_folder) in [("t.toml", false), ("data", true)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            let staging = prepared(path);
            if is_folder {
                fs::create_dir(path.join(existing)).unwrap();
            } else {
                fs::write(path.join(existing), "mine").unwrap();
            }
            let refused = staging.publish(&path.join("data"), &path.join("t.toml"), "text");
            let message = refused.unwrap_err().to_string();
            assert!(
                message.ends_with(&format!("{existing} exists already")),
                "{message}"
            );
            assert_eq!(names(path), [existing]);
        }
    }

    #[test]
    fn what_is_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(prepared(folder.path()));
        assert!(names(folder.path()).is_empty());
    }
}
