//! `tollgate catalog …`: the known models, and how they differ from other catalogs.

mod command;
mod import;
mod source;

pub(super) use command::{Catalog, run};
