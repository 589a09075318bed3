//! Opens the files of a backup without changing them.

use std::path::Path;

use super::error::TransferError;
use super::files::copy_file;
use super::manifest::{DATABASE, JOURNAL};
use super::side::Side;

pub(super) struct OpenedBackup {
    pub(super) side: Side,
    /// A migrated copy of the files, if they have an earlier schema.
    pub(super) scratch: Option<tempfile::TempDir>,
}

impl OpenedBackup {
    pub(super) fn open(folder: &Path) -> Result<Self, TransferError> {
        let database = folder.join(DATABASE);
        if Side::is_current(&database)? {
            return Ok(Self {
                side: Side::backup(&database)?,
                scratch: None,
            });
        }
        // A migration would change the backup, so a copy is migrated instead.
        let scratch = tempfile::tempdir().map_err(TransferError::io(&std::env::temp_dir()))?;
        for name in [DATABASE, JOURNAL] {
            copy_file(&folder.join(name), &scratch.path().join(name))?;
        }
        Ok(Self {
            side: Side::upgraded(&scratch.path().join(DATABASE))?,
            scratch: Some(scratch),
        })
    }
}
