//! The Messages dialect, seen from outside.

mod native_answers;
mod native_requests;
mod native_streams;
