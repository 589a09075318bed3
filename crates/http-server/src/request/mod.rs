//! Reads requests: headers, API key, query and body, each within its limits.

pub(super) mod body;
mod body_memory;
pub(super) mod credentials;
pub(super) mod headers;
mod query;

pub(super) use body_memory::MemoryAccount;
pub(super) use query::Query;
