//! `[catalog]`: a file of known models.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::config::document::Section;
use crate::config::document::setting::{optional_path, settings};
use crate::known_models::KnownModels;

settings! {
    /// Known models in addition to those of the program.
    pub struct Catalog in "catalog" {
        /// A file whose entries replace those of the built-in catalog. `tollgate catalog import` writes it
        /// (docs/operations.md).
        pub file: Option<PathBuf> = optional_path("file", r#""catalog.toml""#),
    }
}

impl Catalog {
    /// The built-in known models and those of the file. A model of the file replaces the built-in model with the same
    /// id.
    pub(crate) fn known_models(&self) -> Result<Cow<'static, KnownModels>, String> {
        match &self.file {
            Some(file) => KnownModels::with_file(file).map(Cow::Owned),
            None => Ok(Cow::Borrowed(KnownModels::built_in())),
        }
    }
}
