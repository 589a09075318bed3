//! Reads requests: API key, query and body, each within its limits.

pub(super) mod body;
pub(super) mod body_memory;
pub(super) mod credentials;
pub(super) mod query;
