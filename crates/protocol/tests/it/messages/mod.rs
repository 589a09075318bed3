//! The Messages dialect, tested through the public API.

mod answers;
mod continuity;
pub(crate) mod grammar;
mod native_answers;
mod native_requests;
mod native_streams;
mod properties;
mod requests;
