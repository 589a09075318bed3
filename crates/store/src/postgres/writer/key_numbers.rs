//! Loads the row numbers of keys that are new to a lane. Row numbers never change.

use std::collections::HashSet;

use super::transaction::KeyNumbers;
use super::worker::{Worker, key_of};
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::postgres::connection::ledger_connection::{ROUND_TRIP_MAX, within};
use crate::queue::command_queue::Queued;
use crate::records::ids::KeyId;

impl Worker {
    /// Loads the numbers of keys that are not known yet. Returns the commands that can be decided. If the database does
    /// not answer, the commands of unknown keys are refused as unavailable, not as invalid.
    pub(crate) async fn load_key_numbers(&mut self, commands: Vec<Queued>) -> Vec<Queued> {
        let unknown: HashSet<KeyId> = {
            let mut state = self.lane.state.borrow_mut();
            let keys = commands.iter().filter_map(|queued| key_of(&queued.command));
            keys.filter(|key| state.keys.get_mut(*key).is_none())
                .collect()
        };
        if unknown.is_empty() {
            return commands;
        }
        let mut tried = 0;
        let failed = loop {
            tried += 1;
            match self.find_numbers(&unknown).await {
                Ok(()) => return commands,
                Err(failed) => {
                    let is_gone = failed.kind() == FailureKind::Disconnected;
                    if is_gone {
                        self.connection.disconnect();
                    }
                    // The connection may have been lost earlier without being noticed. If a new one is lost too, the
                    // cause is different.
                    if !is_gone || tried >= 2 {
                        break failed;
                    }
                }
            }
        };
        let (undecidable, others) = commands
            .into_iter()
            .partition(|queued| key_of(&queued.command).is_some_and(|key| unknown.contains(&key)));
        self.begin_failed(&failed, undecidable);
        others
    }

    /// Looks up the numbers of keys. Also remembers the keys that do not exist.
    async fn find_numbers(&mut self, keys: &HashSet<KeyId>) -> Result<(), PgError> {
        let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let session = self.connection.session().await?;
        let asked = async { session.client.query(&session.sql.numbers, &[&names]).await };
        let rows = within(ROUND_TRIP_MAX, asked).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            found.push(KeyNumbers {
                id: row.try_get(0)?,
                n: row.try_get(1)?,
                wallet: row.try_get(2)?,
                wallet_id: row.try_get(3)?,
            });
        }
        let mut state = self.lane.state.borrow_mut();
        state.missing_keys.clear();
        state.missing_keys.extend(keys);
        for key in found {
            state.missing_keys.remove(&key.id);
            state.keys.insert(key.id, key);
        }
        state.keys.age();
        Ok(())
    }
}
