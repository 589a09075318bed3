//! The catalog of known models: what public models can do and what their vendors charge.
//!
//! `catalog/models.toml` is a part of the program. A file that the configuration names (`[catalog] file`) replaces
//! single entries of it; `tollgate catalog import` writes that file. Configuration entries take from here what they
//! leave out (`config/catalog/known.rs`, `docs/decisions/062`).

mod entry;
pub(crate) mod import;
mod list;
mod write;

pub(crate) use entry::{Day, KnownModel, Offer};
pub(crate) use list::{KnownModels, Origin};
pub(crate) use write::write_file;
