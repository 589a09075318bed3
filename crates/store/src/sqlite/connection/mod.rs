//! Opening the database files: connections, the lock of the server, and the kinds of errors.

pub(super) mod connect;
pub(super) mod errors;
pub(super) mod files;
pub(super) mod open;
pub(super) mod server_lock;
