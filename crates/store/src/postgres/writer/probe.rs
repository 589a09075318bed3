//! Whether a call would be decided, found out by a lane itself.

use super::worker::Worker;
use crate::postgres::connection::errors::{Failed, Trouble};
use crate::postgres::connection::link::within;
use crate::postgres::node::health::{PROBE_MAX, Part};
use crate::records::ids::HoldId;

impl Worker {
    /// Tries the connection that would decide a call. While the lane fails, something is written and taken back:
    /// nothing less finds a disk that is full, or tells whether commits succeed again.
    pub(crate) async fn probe(&mut self) -> Result<(), Failed> {
        let lane = self.lane.number();
        let sql = if self.lane.health.works(Part::Lane(lane)) {
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
            let probed = match self.link.session().await {
                Ok(session) => within(PROBE_MAX, session.client.batch_execute(&sql)).await,
                Err(failed) => Err(failed),
            };
            let Err(failed) = probed else {
                self.lane.works();
                return Ok(());
            };
            if failed.trouble() != Trouble::Gone {
                self.link.roll_back().await;
                return Err(failed);
            }
            self.link.hang_up();
            // A connection may have died unseen, unless it was waited for.
            if tried >= 2 || matches!(failed, Failed::Silent) {
                return Err(failed);
            }
        }
    }
}
