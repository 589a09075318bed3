//! Reaching the database: its address, connections, TLS, and the kinds of errors.

pub(super) mod connect;
pub(super) mod errors;
pub(super) mod ledger_connection;
pub(super) mod open;
pub(super) mod sqlstate;
pub(super) mod tls;
pub(super) mod url;
