//! `tollgate catalog …`: the known models, and what the catalogs of others would change in them.

mod command;
mod import;
mod source;

pub(super) use command::{Catalog, run};
