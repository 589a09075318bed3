//! The catalog of known models: the abilities of public models, and the prices of their vendors.
//!
//! `catalog/models.toml` is built into the program. The file that the configuration names as `[catalog] file` replaces
//! and adds single entries; `tollgate catalog import` writes that file. A configuration entry takes the values that it
//! does not contain from this catalog (`config/catalog/known.rs`, `docs/decisions/062`).

mod entry;
pub(crate) mod import;
mod list;
mod write;

pub(crate) use entry::{Day, KnownModel, Offer};
pub(crate) use list::{KnownModels, Origin};
pub(crate) use write::write_file;
