//! The ledger's thread, which runs all lanes.

use std::rc::Rc;
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::books::Limits;
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::connection::ledger_connection::LedgerConnection;
use crate::postgres::node::health::Health;
use crate::postgres::node::lease::Node;
use crate::postgres::writer::lane::Lane;
use crate::postgres::writer::worker::Worker;
use crate::queue::command_queue::CommandQueue;
use crate::settings::Settings;
use crate::stats::Counters;

/// The number of rows that the books of a lane keep, enough for one batch.
const BATCH_ROWS: usize = 1_024;

/// The parts of the store that the ledger's thread needs.
pub(crate) struct LedgerThread {
    pub(crate) target: Arc<Target>,
    pub(crate) health: Arc<Health>,
    pub(crate) role: Role,
    pub(crate) lanes: Vec<Arc<CommandQueue>>,
    pub(crate) node: Arc<Node>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) settings: Settings,
}

impl LedgerThread {
    /// Runs the lanes until their queues are closed and empty.
    pub(crate) fn run(self, runtime: &Runtime) {
        let _end = LedgerGuard(self.lanes.clone());
        let tasks = LocalSet::new();
        tasks.block_on(runtime, async {
            let mut running = Vec::new();
            for (number, queue) in self.lanes.iter().enumerate() {
                let lane = Lane::new(
                    number,
                    Arc::clone(queue),
                    Arc::clone(&self.node),
                    Arc::clone(&self.counters),
                    Arc::clone(&self.health),
                    &self.settings,
                );
                let worker = || {
                    let connection = LedgerConnection::new(Arc::clone(&self.target), self.role);
                    let limits = Limits {
                        cached_rows_max: BATCH_ROWS,
                        ..self.settings.book_limits()
                    };
                    Worker::new(&lane, connection, limits)
                };
                let (main, patient) = (worker(), worker());
                let waiting = tokio::task::spawn_local(Rc::clone(&lane).wait_for_locks(patient));
                let working = tokio::task::spawn_local(lane.run(main));
                running.push((working, waiting));
            }
            for (working, waiting) in running {
                if working.await.is_err() {
                    tracing::error!("a lane of the ledger panicked");
                }
                waiting.abort();
            }
        });
    }
}

/// Ensures that no caller waits for the ledger's thread after it has ended for any reason.
struct LedgerGuard(Vec<Arc<CommandQueue>>);

impl Drop for LedgerGuard {
    fn drop(&mut self) {
        for lane in &self.0 {
            lane.abandon();
        }
    }
}
