//! Writes responses: status, headers and body.

pub(super) mod cors;
pub(super) mod reply;
