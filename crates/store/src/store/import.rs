//! Operations for importing accounts of another gateway.

use super::Store;
use crate::backend::{Backend, on};
use crate::clock;
use crate::error::StoreError;
use crate::queue::command::Change;
use crate::records::audit::Actor;
use crate::records::import::{ImportBatch, ImportKnown, ImportQuery};

/// Imports. A batch is durable when the method returns, together with an audit row for each wallet and key.
impl Store {
    /// Creates the accounts of a batch, all of them or none. Its transaction delays other decisions, so a batch should
    /// have at most a few hundred accounts.
    pub async fn import(&self, batch: ImportBatch, actor: &Actor) -> Result<(), StoreError> {
        let (batch, actor) = (Box::new(batch), Box::new(actor.clone()));
        let now = clock::now();
        self.change(|reply| Change::Import {
            batch,
            now,
            actor,
            reply,
        })
        .await
    }

    /// Finds out which accounts of an import already exist.
    pub async fn import_known(&self, query: ImportQuery) -> Result<ImportKnown, StoreError> {
        on!(self, backend => backend.import_known(query).await)
    }
}
