//! `[catalog]`: a file of known models.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::config::document::Section;
use crate::config::document::setting::{optional_path, settings};
use crate::known_models::KnownModels;

settings! {
    /// What is known of public models, beside what the program knows itself.
    pub struct Catalog in "catalog" {
        /// A file whose entries replace those of the catalog that is a part of the program. `tollgate catalog
        /// import` writes it (docs/operations.md).
        pub file: Option<PathBuf> = optional_path("file", r#""catalog.toml""#),
    }
}

impl Catalog {
    /// The known models: those of the program, and those of the file in their place.
    pub(crate) fn known_models(&self) -> Result<Cow<'static, KnownModels>, String> {
        match &self.file {
            Some(file) => KnownModels::with_file(file).map(Cow::Owned),
            None => Ok(Cow::Borrowed(KnownModels::built_in())),
        }
    }
}
