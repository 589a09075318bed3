//! Opens the database files: connections, locks and error kinds.

pub(super) mod connect;
pub(super) mod errors;
pub(super) mod files;
pub(super) mod open;
pub(super) mod server_lock;
