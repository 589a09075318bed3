//! `tollgate catalog …`: shows the known models, and imports from other catalogs.

mod command;
mod import;
mod source;

pub(super) use command::{Catalog, run};
