//! Connects to the database: address, connections, TLS and error kinds.

pub(super) mod connect;
pub(super) mod errors;
pub(super) mod ledger_connection;
pub(super) mod open;
pub(super) mod sqlstate;
pub(super) mod tls;
pub(super) mod url;
