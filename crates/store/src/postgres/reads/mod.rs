//! Reads that do not go through the writer.

pub(super) mod access;
pub(super) mod accounts;
pub(super) mod audit;
pub(crate) mod catalog;
pub(super) mod entries;
pub(super) mod import;
pub(super) mod key_search;
pub(super) mod names;
pub(super) mod pool;
pub(super) mod searches;
pub(super) mod statement;
pub(super) mod verify;
