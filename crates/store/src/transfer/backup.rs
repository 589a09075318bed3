//! `tollgate backup`: copies the whole store to a folder, while servers run.
//!
//! A backup is a store of its own. It has the two `SQLite` files, even if the source is another database, a manifest,
//! and the media. The folder gets its final name when everything in it is on disk, so that an interrupted backup never
//! looks complete.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::contents::StoreContents;
use super::copy::copy;
use super::error::TransferError;
use super::files::{copy_file, digest_of, parent, sync_folder, sync_tree};
use super::manifest::{
    DATABASE, FORMAT, IN_PROGRESS, JOURNAL, MANIFEST, MEDIA, Manifest, StoredFile,
};
use super::media_files;
use super::opened_backup::OpenedBackup;
use super::report::{BackupReport, Progress};
use super::side::Side;
use crate::clock;
use crate::settings::{Location, Settings};
use crate::sqlite::{SqliteSide, copy_pages};

/// Copies a store, and the files of a media folder, to a new folder while servers keep running. The copy shows the
/// ledger at one moment, and the journal at the same moment or slightly earlier. The copy is verified, and the report
/// contains the result.
pub async fn backup_store(
    from: &Settings,
    media: Option<&Path>,
    to: &Path,
    program: &str,
    mut progress: impl FnMut(Progress),
) -> Result<BackupReport, TransferError> {
    let partial = Partial::begin(to)?;
    let database = partial.folder.join(DATABASE);
    let place = copy_databases(from, &database, &mut progress).await?;
    let OpenedBackup { side, scratch } = OpenedBackup::open(&partial.folder)?;
    let verified = side.verify().await?;
    let contents = StoreContents::of(&side).await?;
    drop((side, scratch));
    let mut manifest = Manifest {
        format: FORMAT,
        program: program.to_owned(),
        made_at: clock::now().get(),
        store: place,
        wallets: contents.totals.wallets,
        keys: contents.totals.keys,
        entries: contents.totals.entries,
        is_clean: verified.is_clean(),
        has_media: media.is_some(),
        files: Vec::new(),
    };
    for name in [DATABASE, JOURNAL] {
        let (bytes, sha256) = digest_of(&partial.folder.join(name))?;
        manifest.files.push(StoredFile {
            path: name.to_owned(),
            bytes,
            sha256,
        });
    }
    if let Some(media) = media {
        let folder = partial.folder.join(MEDIA);
        fs::create_dir(&folder).map_err(TransferError::io(&folder))?;
        for name in media_files::list(media)? {
            progress(Progress {
                step: "media",
                done: contents.rows(),
                total: contents.rows(),
            });
            // A server may have deleted the file meanwhile, because it has expired.
            let Some((bytes, sha256)) = copy_file(&media.join(&name), &folder.join(&name))? else {
                continue;
            };
            manifest.files.push(StoredFile {
                path: format!("{MEDIA}/{name}"),
                bytes,
                sha256,
            });
        }
    }
    manifest.write(&partial.folder.join(MANIFEST))?;
    partial.complete(to)?;
    Ok(BackupReport {
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        media_files: manifest.media().count() as u64,
        rows: contents.rows(),
        totals: contents.totals,
        verified,
    })
}

/// Copies the database into two `SQLite` files. Returns the name of the source.
async fn copy_databases(
    from: &Settings,
    to: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<String, TransferError> {
    match &from.location {
        // Copies page by page, which is fast and exact.
        Location::File(path) => {
            copy_pages(path, to, progress)?;
            Ok(path.display().to_string())
        }
        Location::Server(server) => {
            let source = Side::snapshot(server).await?;
            let contents = StoreContents::of(&source).await?;
            let mut destination = Side::destination(&Settings::at(to)).await?;
            destination.begin(&contents.fingerprint()).await?;
            copy(&source, &mut destination, &contents, progress).await?;
            let copied = StoreContents::of(&destination).await?;
            if let Some(difference) = contents.difference(&copied) {
                return Err(TransferError::Differs(difference));
            }
            destination.finish(source.last_epoch().await?).await?;
            drop(destination);
            SqliteSide::checkpoint_files(to)?;
            Ok(server.shown())
        }
    }
}

/// The folder of a backup in progress, beside its final location.
struct Partial {
    folder: PathBuf,
    /// Locked, so that no other backup replaces the contents of the folder.
    _mark: File,
}

impl Partial {
    fn begin(to: &Path) -> Result<Self, TransferError> {
        if to.symlink_metadata().is_ok() {
            return Err(TransferError::Exists {
                path: to.to_owned(),
            });
        }
        let mut name = to.as_os_str().to_owned();
        name.push(".partial");
        let folder = PathBuf::from(name);
        // A backup that was killed before it created its mark leaves an empty folder.
        if folder.symlink_metadata().is_ok() && fs::remove_dir(&folder).is_err() {
            return Self::replace(folder);
        }
        // Only the owner may read the folder, because it contains digests, names and possibly the bodies of calls.
        let mut owned = DirBuilder::new();
        owned.recursive(true).mode(0o700);
        owned.create(&folder).map_err(TransferError::io(&folder))?;
        Self::marked(folder)
    }

    /// Empties the folder of a killed backup. Refuses any other folder.
    fn replace(folder: PathBuf) -> Result<Self, TransferError> {
        let is_folder = folder.symlink_metadata().is_ok_and(|found| found.is_dir());
        // The last steps of a backup remove the mark and then rename the folder.
        let is_left = folder.join(IN_PROGRESS).exists() || Manifest::read(&folder).is_ok();
        if !is_folder || !is_left {
            return Err(TransferError::Exists { path: folder });
        }
        let manifest = folder.join(MANIFEST);
        if manifest.exists() {
            // A backup in its last steps holds this lock.
            drop(locked(&manifest, &folder)?);
        }
        let partial = Self::marked(folder)?;
        // The mark stays, so that the next backup recognizes the folder if this one is killed too.
        let io = TransferError::io(&partial.folder);
        for found in fs::read_dir(&partial.folder).map_err(&io)? {
            let found = found.map_err(&io)?;
            let path = found.path();
            if found.file_type().map_err(&io)?.is_dir() {
                fs::remove_dir_all(&path).map_err(TransferError::io(&path))?;
            } else if found.file_name() != IN_PROGRESS {
                fs::remove_file(&path).map_err(TransferError::io(&path))?;
            }
        }
        Ok(partial)
    }

    fn marked(folder: PathBuf) -> Result<Self, TransferError> {
        let mark = locked(&folder.join(IN_PROGRESS), &folder)?;
        Ok(Self {
            folder,
            _mark: mark,
        })
    }

    /// Gives the folder its final name, after everything in it is on disk.
    fn complete(self, to: &Path) -> Result<(), TransferError> {
        let io = TransferError::io(&self.folder);
        sync_tree(&self.folder)?;
        // Once the mark is removed, the lock on the manifest protects the folder.
        let _manifest = locked(&self.folder.join(MANIFEST), &self.folder)?;
        fs::remove_file(self.folder.join(IN_PROGRESS)).map_err(&io)?;
        sync_folder(&self.folder)?;
        fs::rename(&self.folder, to).map_err(&io)?;
        sync_folder(parent(to))
    }
}

/// Opens or creates a file, and locks it.
fn locked(path: &Path, folder: &Path) -> Result<File, TransferError> {
    let mut options = File::options();
    // On a network file system, only a file that is open for writing can be locked.
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(path).map_err(TransferError::io(path))?;
    file.try_lock().map_err(|_| TransferError::Busy {
        place: folder.display().to_string(),
    })?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            format: FORMAT,
            program: "test".to_owned(),
            made_at: 1,
            store: "store".to_owned(),
            wallets: 0,
            keys: 0,
            entries: 0,
            is_clean: true,
            has_media: false,
            files: Vec::new(),
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let found = fs::read_dir(folder).unwrap();
        found
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_backup_that_was_killed_at_any_step_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy");
        let left = folder.path().join("copy.partial");
        // A backup was killed before it created its mark.
        fs::create_dir(&left).unwrap();
        // A backup was killed while it copied.
        let partial = Partial::begin(&to).unwrap();
        fs::create_dir(left.join(MEDIA)).unwrap();
        fs::write(left.join(DATABASE), "part").unwrap();
        drop(partial);
        // A backup was killed between its last steps: the mark was removed, but the folder was not renamed yet.
        let partial = Partial::begin(&to).unwrap();
        assert_eq!(names(&left), [IN_PROGRESS]);
        manifest().write(&left.join(MANIFEST)).unwrap();
        drop(partial);
        fs::remove_file(left.join(IN_PROGRESS)).unwrap();
        let partial = Partial::begin(&to).unwrap();
        assert_eq!(names(&left), [IN_PROGRESS]);
        manifest().write(&left.join(MANIFEST)).unwrap();
        partial.complete(&to).unwrap();
        assert_eq!(names(&to), [MANIFEST]);
        assert!(!left.exists());
    }

    #[test]
    fn a_backup_in_progress_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy");
        let left = folder.path().join("copy.partial");
        let is_busy = || matches!(Partial::begin(&to), Err(TransferError::Busy { .. }));
        let partial = Partial::begin(&to).unwrap();
        assert!(is_busy());
        manifest().write(&left.join(MANIFEST)).unwrap();
        let last_steps = locked(&left.join(MANIFEST), &left).unwrap();
        fs::remove_file(left.join(IN_PROGRESS)).unwrap();
        drop(partial);
        assert!(is_busy());
        assert_eq!(names(&left), [MANIFEST]);
        drop(last_steps);
        Partial::begin(&to).unwrap();
    }
}
