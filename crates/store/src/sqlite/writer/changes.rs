//! Stores price and cost versions, which the server adds by itself.

use ledger::UnixMs;
use rusqlite::{OptionalExtension as _, params};

use super::ledger::Ledger;
use crate::error::StoreError;
use crate::queue::command::CostedRoute;
use crate::records::cost::CostVersion;
use crate::records::ids::PriceVersion;

impl Ledger<'_> {
    pub(crate) fn price_version(
        &mut self,
        model: &str,
        card: &str,
        now: UnixMs,
    ) -> Result<PriceVersion, StoreError> {
        let select = "SELECT id FROM price_versions WHERE model = ?1 AND card = ?2";
        let known = self
            .connection
            .prepare_cached(select)?
            .query_row([model, card], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok(PriceVersion::new(id, model, card));
        }
        let insert = "INSERT INTO price_versions (model, card, created_at) VALUES (?1, ?2, ?3)";
        self.connection
            .prepare_cached(insert)?
            .execute(params![model, card, now.get()])?;
        self.books.pending.wrote = true;
        let id = self.connection.last_insert_rowid();
        Ok(PriceVersion::new(id, model, card))
    }

    pub(crate) fn cost_version(
        &mut self,
        route: &CostedRoute,
        now: UnixMs,
    ) -> Result<CostVersion, StoreError> {
        let (model, channel, card) = (&*route.model, &*route.channel, &*route.card);
        let select = "SELECT id FROM cost_versions WHERE model = ?1 AND channel = ?2 AND card = ?3";
        let known = self
            .connection
            .prepare_cached(select)?
            .query_row([model, channel, card], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok(CostVersion::new(id, model, channel, card));
        }
        let insert =
            "INSERT INTO cost_versions (model, channel, card, created_at) VALUES (?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(insert)?.execute(params![
            model,
            channel,
            card,
            now.get()
        ])?;
        self.books.pending.wrote = true;
        let id = self.connection.last_insert_rowid();
        Ok(CostVersion::new(id, model, channel, card))
    }
}
