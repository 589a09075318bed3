//! Copies files, computes their digests, and syncs them.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use super::error::TransferError;

use crate::sha256::Sha256;

const CHUNK_BYTES: usize = 256 * 1024;

/// The size and the digest of a file.
pub(super) fn digest_of(path: &Path) -> Result<(u64, String), TransferError> {
    File::open(path)
        .and_then(|file| pump(file, io::sink()))
        .map_err(TransferError::io(path))
}

/// Copies a file with its modification time, by which media expire. Returns its size and digest, or `None` if it does
/// not exist.
pub(super) fn copy_file(from: &Path, to: &Path) -> Result<Option<(u64, String)>, TransferError> {
    let source = match File::open(from) {
        Ok(source) => source,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TransferError::io(from)(error)),
    };
    let copied = || {
        let modified = source.metadata()?.modified()?;
        let copy = File::create_new(to)?;
        let copied = pump(&source, &copy)?;
        copy.set_modified(modified)?;
        copy.sync_all()?;
        Ok(copied)
    };
    copied().map(Some).map_err(TransferError::io(to))
}

fn pump(mut from: impl Read, mut to: impl Write) -> io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut bytes: u64 = 0;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let read = chunk.get(..count).unwrap_or_default();
        hasher.update(read);
        to.write_all(read)?;
        bytes += count as u64;
    }
    Ok((bytes, super::contents::hex(&hasher.finish())))
}

/// Syncs all files below a folder, and the folders themselves.
pub(super) fn sync_tree(folder: &Path) -> Result<(), TransferError> {
    let io = TransferError::io(folder);
    for found in fs::read_dir(folder).map_err(&io)? {
        let found = found.map_err(&io)?;
        if found.file_type().map_err(&io)?.is_dir() {
            sync_tree(&found.path())?;
        } else {
            let synced = File::open(found.path()).and_then(|file| file.sync_all());
            synced.map_err(TransferError::io(&found.path()))?;
        }
    }
    sync_folder(folder)
}

pub(super) fn sync_folder(folder: &Path) -> Result<(), TransferError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(TransferError::io(folder))
}

pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
