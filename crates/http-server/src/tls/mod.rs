//! TLS of both listeners: loads certificates, accepts connections, and reloads changed files.

mod acceptor;
mod certificate;

pub use acceptor::{HTTP_1, HTTP_1_AND_2, HttpVersions, TlsAcceptor};
pub use certificate::{TlsFiles, load};
