//! Stores credentials that were sent as text in files of their own, and names those files in the entries.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::document::Entries;
use crate::config::document::on_one_line;

/// The folder of the credential files, beside the configuration.
pub(super) const FOLDER: &str = "credentials";

/// A credential that an entry contained as text. It has no `Debug`, so that it cannot be logged.
struct Pasted {
    secret: String,
    /// The path as the entry names it.
    name: String,
}

/// The credentials that were taken out of entries.
#[derive(Default)]
pub(crate) struct PastedSecrets(Vec<Pasted>);

/// The credential of a channel is not valid or not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("channel[{index}].credential: {fault}")]
pub(crate) struct BadCredential {
    pub(crate) index: usize,
    pub(crate) fault: String,
}

impl PastedSecrets {
    /// Replaces each credential that is text with the name of the file that will contain it. `suffix` makes the names
    /// unique, so that no file in use is overwritten.
    pub(crate) fn take(entries: &mut Entries, suffix: &str) -> Result<Self, BadCredential> {
        let mut taken = Vec::new();
        for (index, channel) in entries.channels.iter_mut().enumerate() {
            let Some(Json::String(text)) = channel.get("credential") else {
                continue;
            };
            let secret = on_one_line(text.trim()).into_owned();
            let bad = |fault: &str| BadCredential {
                index,
                fault: fault.to_owned(),
            };
            if secret.is_empty() {
                return Err(bad("is empty"));
            }
            if !secret.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
                return Err(bad("must be one line of plain text"));
            }
            let name = format!("{FOLDER}/{}-{index}-{suffix}", file_name(channel));
            channel.insert("credential".to_owned(), json!({ "file": name }));
            taken.push(Pasted { secret, name });
        }
        Ok(Self(taken))
    }

    /// Whether no entry contained a credential as text.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes each credential to its file, which only this user can read.
    pub(crate) fn write(&self, beside: &Path) -> io::Result<()> {
        for pasted in &self.0 {
            let file = beside.join(&pasted.name);
            if let Some(folder) = file.parent() {
                create_private_folder(folder)?;
            }
            let mut options = std::fs::OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(file)?;
            file.write_all(pasted.secret.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()?;
        }
        Ok(())
    }

    /// Removes the files again, because the change that they belong to has failed.
    pub(crate) fn remove(&self, beside: &Path) {
        for pasted in &self.0 {
            remove(&beside.join(&pasted.name));
        }
    }
}

/// Removes the files of pasted credentials that no entry names any more.
pub(crate) fn remove_unused(before: &Entries, after: &Entries, beside: &Path) {
    let still: Vec<&str> = after.credential_files().collect();
    let prefix = format!("{FOLDER}/");
    let ours = before
        .credential_files()
        .filter(|it| it.strip_prefix(&prefix).is_some_and(is_ours));
    for name in ours.filter(|name| !still.contains(name)) {
        remove(&beside.join(name));
    }
}

/// Whether we created a file of this name. Files that people put into the folder are not touched.
fn is_ours(name: &str) -> bool {
    let mut parts = name.rsplitn(3, '-');
    let suffix = parts.next().unwrap_or_default();
    let index = parts.next().unwrap_or_default();
    suffix.len() == 8
        && suffix.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !index.is_empty()
        && index.bytes().all(|byte| byte.is_ascii_digit())
        && !name.contains(['/', '.'])
}

fn remove(file: &PathBuf) {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, file = %file.display(), "a credential that is not used any more could not be removed");
        }
        _ => {}
    }
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

/// The channel's name, without characters that a file name cannot contain. Invalid names are reported when the entry is
/// read.
fn file_name(channel: &Map<String, Json>) -> String {
    let name = channel
        .get("name")
        .and_then(Json::as_str)
        .unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.chars().filter(plain).take(64).collect()
}
