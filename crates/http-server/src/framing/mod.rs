//! Finds where the requests of an HTTP/1 connection begin and end.

mod chunks;
#[cfg(any(test, fuzzing))]
mod hostile;
mod reader;
mod refused_requests;
#[cfg(test)]
mod tests;

#[cfg(fuzzing)]
pub use hostile::any_requests;
pub(super) use reader::FramingReader;
pub(super) use refused_requests::RefusedRequests;
