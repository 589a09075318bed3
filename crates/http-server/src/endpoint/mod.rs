//! Finds the endpoint of a request by its method and path.

mod endpoints;
mod find;
#[cfg(test)]
mod tests;

pub(super) use endpoints::{Endpoint, MediaPath, PAGE_FILES, WebSocketPath};
pub(super) use find::Target;
pub use find::is_callable_path;
