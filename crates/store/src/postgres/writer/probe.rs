//! Probes whether a lane can decide a call.

use super::worker::Worker;
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::postgres::connection::ledger_connection::within;
use crate::postgres::node::health::{Component, PROBE_MAX};
use crate::records::ids::HoldId;

impl Worker {
    /// Probes the connection that decides calls. While the lane fails, the probe writes a row and deletes it again,
    /// because only a write detects a full disk and shows whether commits succeed again.
    pub(crate) async fn probe(&mut self) -> Result<(), PgError> {
        let lane = self.lane.number();
        let sql = if self.lane.health.works(Component::Lane(lane)) {
            "SELECT 1".to_owned()
        } else {
            let id = HoldId::first_of_lane(self.lane.node.epoch(), lane).get();
            // No wallet has the number 0.
            format!(
                "BEGIN;
                 INSERT INTO holds (wallet, id, key, amount, tokens, counts, request_id, opened_at)
                 VALUES (0, {id}, 0, 0, 0, false, 'probe', 0);
                 DELETE FROM holds WHERE wallet = 0 AND id = {id};
                 COMMIT"
            )
        };
        let mut tried = 0;
        loop {
            tried += 1;
            let probed = match self.connection.session().await {
                Ok(session) => within(PROBE_MAX, session.client.batch_execute(&sql)).await,
                Err(failed) => Err(failed),
            };
            let Err(failed) = probed else {
                self.lane.works();
                return Ok(());
            };
            if failed.kind() != FailureKind::Disconnected {
                self.connection.roll_back().await;
                return Err(failed);
            }
            self.connection.disconnect();
            // The connection may have been lost earlier without being noticed. A timeout has another cause.
            if tried >= 2 || matches!(failed, PgError::NoAnswer) {
                return Err(failed);
            }
        }
    }
}
