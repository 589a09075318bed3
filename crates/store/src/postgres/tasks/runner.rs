//! Tasks, on connections of their own: polls by the thousand must not hold up the ledger's lanes.
//!
//! A step that moves money is a transaction that locks the wallet first (`desk`); any other is one statement
//! that names the claim's fence (`steps`). Leases are time of the database's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ledger::Micro;
use tokio::sync::{Mutex, Semaphore};

use super::transactions::Desk;
use crate::error::StoreError;
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::node::lease::Node;
use crate::postgres::reads::pool::Slot;
use crate::queue::command::{Reply, TaskCommand};
use crate::queue::command_queue::Refused;
use crate::queue::durable::Batch;
use crate::records::ids::HoldId;
use crate::stats::Counters;

/// Connections for steps that move money.
pub(crate) const DESKS: usize = 2;
/// Steps that wait or are under way.
const STEPS_MAX: usize = 4_096;

/// Where steps of tasks are made.
pub(crate) struct Tasks {
    runtime: tokio::runtime::Handle,
    desks: [Arc<Mutex<Desk>>; DESKS],
    next: AtomicUsize,
    line: Arc<Slot>,
    node: Arc<Node>,
    places: Arc<Semaphore>,
}

impl Tasks {
    pub(crate) fn new(
        target: &Arc<Target>,
        role: Role,
        runtime: tokio::runtime::Handle,
        node: &Arc<Node>,
        debt_limit: Micro,
        counters: &Arc<Counters>,
    ) -> Self {
        // The last numbers among the lanes: no lane of the ledger has them.
        let desk = |number| {
            let lane = HoldId::LANES_MAX - DESKS + number;
            let desk = Desk::new(target, role, node, lane, debt_limit, counters);
            Arc::new(Mutex::new(desk))
        };
        Self {
            runtime,
            desks: std::array::from_fn(desk),
            next: AtomicUsize::new(0),
            line: Arc::new(Slot::new(target, Role::Tasks)),
            node: Arc::clone(node),
            places: Arc::new(Semaphore::new(STEPS_MAX)),
        }
    }

    /// Makes a step and answers when it is durable.
    pub(crate) fn take(&self, command: TaskCommand) -> Result<(), Refused> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(Refused::Full);
        };
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % DESKS;
        let desk = self.desks.get(turn).map(Arc::clone);
        let (line, epoch) = (Arc::clone(&self.line), self.node.epoch().get());
        self.runtime.spawn(async move {
            let Some(desk) = desk else { return };
            run(command, &desk, &line, epoch).await;
            drop(place);
        });
        Ok(())
    }
}

async fn run(command: TaskCommand, desk: &Mutex<Desk>, line: &Slot, epoch: i64) {
    match command {
        TaskCommand::Open(new, reply) => {
            let opened = desk.lock().await.open(*new).await;
            let opened = opened.map(|opened| (opened, durable()));
            // Who no longer waits need not know.
            drop(reply.send(opened));
        }
        TaskCommand::End(ended, reply) => answer(reply, desk.lock().await.end(*ended).await),
        TaskCommand::Refuse(claim, now, reply) => {
            answer(reply, desk.lock().await.refuse(claim, now).await);
        }
        TaskCommand::Accept(accepted, reply) => {
            answer(reply, super::updates::accept(line, *accepted).await)
        }
        TaskCommand::Keep(kept, reply) => answer(reply, super::updates::keep(line, *kept).await),
        TaskCommand::Note(note, reply) => answer(reply, super::updates::note(line, *note).await),
        TaskCommand::Claim(due, reply) => {
            answer(reply, super::updates::claim(line, due, epoch).await)
        }
        TaskCommand::ClaimOne(one, reply) => {
            answer(reply, super::updates::claim_one(line, one, epoch).await);
        }
        TaskCommand::Hide(wallet, task, _, reply) => {
            answer(reply, super::updates::hide(line, wallet, task).await);
        }
        TaskCommand::Forget(old, reply) => answer(reply, super::updates::forget(line, old).await),
        TaskCommand::ClaimCallbacks(due, reply) => {
            answer(
                reply,
                super::updates::claim_callbacks(line, due, epoch).await,
            );
        }
        TaskCommand::NoteCallback(note, reply) => {
            answer(reply, super::updates::note_callback(line, note).await);
        }
    }
}

fn answer<T>(reply: Reply<T>, made: Result<T, StoreError>) {
    drop(reply.send(made.map(|made| (made, durable()))));
}

/// What is answered is committed.
fn durable() -> crate::queue::durable::Durable {
    let batch = Batch::without_line(0);
    batch.done();
    batch.durable()
}
