//! Inspects a database without changing it.

use std::path::Path;

use tokio::sync::oneshot;

use crate::error::OpenError;
use crate::postgres::inspect as inspect_server;
use crate::records::store_state::StoreState;
use crate::settings::{Location, Settings};
use crate::sqlite::inspect as inspect_file;
use crate::store::Store;

impl Store {
    /// Opens the database, compares its schema with the program's, and reads a row. It neither creates nor migrates
    /// anything.
    pub async fn inspect(settings: &Settings) -> Result<StoreState, OpenError> {
        match &settings.location {
            Location::File(path) => inspect_on_thread(path).await,
            Location::Server(server) => inspect_server(server).await,
        }
    }
}

/// Inspects a file on a thread of its own, because reading it blocks.
async fn inspect_on_thread(path: &Path) -> Result<StoreState, OpenError> {
    let (reply, answer) = oneshot::channel();
    let failed = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    let file = path.to_owned();
    let thread = std::thread::Builder::new().name("store-inspect".to_owned());
    thread
        .spawn(move || drop(reply.send(inspect_file(&file))))
        .map_err(failed)?;
    let ended = |_| failed(std::io::Error::other("the thread that read it has ended"));
    answer.await.map_err(ended)?
}
