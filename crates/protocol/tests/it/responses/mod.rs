//! The Responses dialect.

mod native_answers;
mod native_requests;
mod native_streams;
