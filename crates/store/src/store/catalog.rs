//! Operations on the catalog of models, and on the versions of its price and cost cards.

use super::Store;
use crate::backend::{Backend, on};
use crate::clock;
use crate::error::StoreError;
use crate::queue::command::{Change, CostedRoute, NewCatalog};
use crate::records::audit::Actor;
use crate::records::catalog::{AuditAction, CatalogDocument};
use crate::records::cost::{CostRow, CostVersion};
use crate::records::entries::PriceRow;
use crate::records::ids::{PriceNumber, PriceVersion};

impl Store {
    /// The version of a price card. A new card is stored, and kept forever.
    pub async fn price_version(
        &self,
        model: &str,
        card_json: &str,
    ) -> Result<PriceVersion, StoreError> {
        let (owned, card) = (model.to_owned(), card_json.to_owned());
        let version = self.change(|reply| Change::PriceVersion {
            model: owned,
            card,
            now: clock::now(),
            reply,
        });
        let version = version.await?;
        self.counters().settled.name(version, model);
        Ok(version)
    }

    /// Stores a catalog as the successor of version `expected` (0 if there is none), with its audit row. Returns its
    /// version, or `None` if `expected` is not the latest version.
    pub async fn replace_catalog(
        &self,
        expected: i64,
        document: String,
        action: AuditAction,
        actor: &Actor,
    ) -> Result<Option<i64>, StoreError> {
        let catalog = Box::new(NewCatalog {
            expected,
            document,
            action,
        });
        let actor = Box::new(actor.clone());
        let stored = self.change(|reply| Change::Catalog {
            catalog,
            now: clock::now(),
            actor,
            reply,
        });
        stored.await
    }

    /// The latest stored catalog.
    pub async fn latest_catalog(&self) -> Result<Option<CatalogDocument>, StoreError> {
        on!(self, backend => backend.latest_catalog().await)
    }

    /// The version of the latest stored catalog, 0 if there is none.
    pub async fn catalog_version(&self) -> Result<i64, StoreError> {
        on!(self, backend => backend.catalog_version().await)
    }

    /// The version of a route's cost card. A new card is stored, and kept forever.
    pub async fn cost_version(
        &self,
        model: &str,
        channel: &str,
        card_json: &str,
    ) -> Result<CostVersion, StoreError> {
        let route = CostedRoute {
            model: model.to_owned(),
            channel: channel.to_owned(),
            card: card_json.to_owned(),
        };
        let version = self.change(|reply| Change::CostVersion {
            route,
            now: clock::now(),
            reply,
        });
        version.await
    }

    /// Every price card, oldest first.
    pub async fn prices(&self) -> Result<Vec<PriceRow>, StoreError> {
        on!(self, backend => backend.prices().await)
    }

    /// The price card of a version. This never waits for searches, because the end of a task needs it.
    pub async fn price(&self, version: PriceNumber) -> Result<Option<PriceRow>, StoreError> {
        on!(self, backend => backend.price(version).await)
    }

    /// Every cost card, oldest first.
    pub async fn costs(&self) -> Result<Vec<CostRow>, StoreError> {
        on!(self, backend => backend.costs().await)
    }
}
