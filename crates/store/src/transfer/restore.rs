//! `tollgate restore`: copies a backup into an empty database.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::TransferError;
use super::files::{copy_file, digest_of, parent, sync_folder};
use super::manifest::{MEDIA, Manifest};
use super::move_store::{Transfer, close_orphans};
use super::opened_backup::OpenedBackup;
use super::report::{Progress, TransferReport};
use super::side::Side;
use crate::settings::Settings;

/// Restores a backup to an empty database of either kind and verifies it, and restores its media to a folder.
/// Overwrites nothing. The same call continues an interrupted restore. Also returns the number of restored media files.
pub async fn restore_store(
    backup: &Path,
    to: &Settings,
    media: Option<&Path>,
    mut progress: impl FnMut(Progress),
) -> Result<(TransferReport, u64), TransferError> {
    let manifest = Manifest::read_checked(backup)?;
    let missing = match media {
        Some(media) => missing_media(&manifest, backup, media)?,
        None => Vec::new(),
    };
    let source = OpenedBackup::open(backup)?;
    let destination = Side::destination(to).await?;
    let task = Transfer::check(source.side, destination).await?;
    // Media are restored before the database, so that a database that can be opened has its media.
    if let Some(media) = media {
        restore_media(&missing, backup, media)?;
    }
    let report = task.run(&mut progress).await?;
    drop(source.scratch);
    Ok((close_orphans(to, report)?, missing.len() as u64))
}

/// The media files that are not in the folder yet. Refuses a file that exists and differs.
fn missing_media(
    manifest: &Manifest,
    backup: &Path,
    media: &Path,
) -> Result<Vec<String>, TransferError> {
    let mut missing = Vec::new();
    for name in manifest.media() {
        let there = media.join(name);
        if there.symlink_metadata().is_err() {
            missing.push(name.to_owned());
        } else if digest_of(&there)? != digest_of(&backup.join(MEDIA).join(name))? {
            return Err(TransferError::Exists { path: there });
        }
    }
    Ok(missing)
}

/// Copies media files, and then syncs the files and their folders.
fn restore_media(names: &[String], backup: &Path, media: &Path) -> Result<(), TransferError> {
    let new_folders: Vec<&Path> = media.ancestors().take_while(|it| !it.exists()).collect();
    fs::create_dir_all(media).map_err(TransferError::io(media))?;
    for name in names {
        // A file gets its final name when it is complete.
        let partial: PathBuf = media.join(format!("{name}.partial"));
        if partial.symlink_metadata().is_ok() {
            fs::remove_file(&partial).map_err(TransferError::io(&partial))?;
        }
        copy_file(&backup.join(MEDIA).join(name), &partial)?;
        let to = media.join(name);
        fs::rename(&partial, &to).map_err(TransferError::io(&to))?;
    }
    sync_folder(media)?;
    for folder in new_folders {
        sync_folder(parent(folder))?;
    }
    Ok(())
}
