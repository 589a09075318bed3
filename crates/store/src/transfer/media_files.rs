//! Lists the files of a media folder.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::error::TransferError;
use crate::media::MediaName;

/// The names of the media in a folder. Incoming files are in a folder of their own and are not included.
pub(super) fn list(folder: &Path) -> Result<Vec<String>, TransferError> {
    let io = TransferError::io(folder);
    let found = match fs::read_dir(folder) {
        Ok(found) => found,
        // The folder does not exist, because no medium was ever stored.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(error)),
    };
    let mut names = Vec::new();
    for file in found {
        let name = file.map_err(&io)?.file_name();
        names.extend(name.into_string().ok().filter(|name| is_name(name)));
    }
    names.sort();
    Ok(names)
}

pub(super) fn is_name(name: &str) -> bool {
    MediaName::parse(name).is_some()
}
