//! The resources of the admin listener, one file each.

pub(crate) mod audit;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod session;
pub(crate) mod tokens;
