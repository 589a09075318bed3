//! The errors of a gateway's start.

use std::io;
use std::net::SocketAddr;

use engine::CatalogError;
use store::{MediaOpenError, OpenError};

use super::catalog_keeper::ReplaceError;
use crate::config::Problem;

#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("the configuration has {} problem(s)", .0.len())]
    Config(Vec<Problem>),
    #[error("the store cannot be opened: {0}")]
    Store(#[from] OpenError),
    #[error("the thread that opens the store cannot be started, or panicked")]
    StoreThread,
    #[error("media cannot be kept: {0}")]
    Media(#[from] MediaOpenError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(
        "the catalog in the store cannot be used: {0}. Set `admin.config = \"file\"` to start with the entries of the file"
    )]
    StoredCatalog(ReplaceError),
    #[error("TLS cannot be served: {0}")]
    Certificate(String),
    #[error("the serving threads cannot be started: {0}")]
    ServeThreads(io::Error),
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
}
