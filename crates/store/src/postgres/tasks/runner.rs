//! Runs the commands of tasks and alerts on their own connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ledger::Micro;
use tokio::sync::{Mutex, Semaphore};

use super::transactions::TaskTransactions;
use super::updates;
use crate::error::StoreError;
use crate::postgres::alerts;
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::node::lease::Node;
use crate::postgres::reads::pool::SharedConnection;
use crate::queue::command::{AlertCommand, Reply, TaskCommand};
use crate::queue::command_queue::PushError;
use crate::queue::durable::Batch;
use crate::records::ids::HoldId;
use crate::stats::Counters;

/// The number of connections for steps that move money.
pub(crate) const TASK_CONNECTIONS: usize = 2;
/// The maximum number of commands that wait or run.
const TASK_COMMANDS_MAX: usize = 4_096;

pub(crate) struct Tasks {
    runtime: tokio::runtime::Handle,
    transactions: [Arc<Mutex<TaskTransactions>>; TASK_CONNECTIONS],
    next: AtomicUsize,
    connection: Arc<SharedConnection>,
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
        // Uses the highest lane numbers, which no lane of the ledger has.
        let transactions = |number| {
            let lane = HoldId::LANES_MAX - TASK_CONNECTIONS + number;
            let transactions =
                TaskTransactions::new(target, role, node, lane, debt_limit, counters);
            Arc::new(Mutex::new(transactions))
        };
        Self {
            runtime,
            transactions: std::array::from_fn(transactions),
            next: AtomicUsize::new(0),
            connection: Arc::new(SharedConnection::new(target, Role::Tasks)),
            node: Arc::clone(node),
            places: Arc::new(Semaphore::new(TASK_COMMANDS_MAX)),
        }
    }

    /// Runs a command of alerts, and answers when its effect is durable.
    pub(crate) fn take_alert(&self, command: AlertCommand) -> Result<(), PushError> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(PushError::Full);
        };
        let (connection, epoch) = (Arc::clone(&self.connection), self.node.epoch().get());
        self.runtime.spawn(async move {
            alerts::run(command, &connection, epoch).await;
            drop(place);
        });
        Ok(())
    }

    /// Runs a command of tasks, and answers when its effect is durable.
    pub(crate) fn take(&self, command: TaskCommand) -> Result<(), PushError> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(PushError::Full);
        };
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % TASK_CONNECTIONS;
        let transactions = self.transactions.get(turn).map(Arc::clone);
        let (connection, epoch) = (Arc::clone(&self.connection), self.node.epoch().get());
        self.runtime.spawn(async move {
            let Some(transactions) = transactions else {
                return;
            };
            run(command, &transactions, &connection, epoch).await;
            drop(place);
        });
        Ok(())
    }
}

async fn run(
    command: TaskCommand,
    transactions: &Mutex<TaskTransactions>,
    connection: &SharedConnection,
    epoch: i64,
) {
    match command {
        TaskCommand::Open(new, reply) => {
            let opened = transactions.lock().await.open(*new).await;
            let opened = opened.map(|opened| (opened, durable()));
            // A receiver that is gone does not need an answer.
            drop(reply.send(opened));
        }
        TaskCommand::End(ended, reply) => {
            answer(reply, transactions.lock().await.end(*ended).await);
        }
        TaskCommand::Refuse(claim, now, reply) => {
            answer(reply, transactions.lock().await.refuse(claim, now).await);
        }
        TaskCommand::Accept(accepted, reply) => {
            answer(reply, updates::accept(connection, *accepted).await);
        }
        TaskCommand::RenewClaim(renewal, reply) => {
            answer(reply, updates::renew_claim(connection, *renewal).await);
        }
        TaskCommand::ReportPoll(report, reply) => {
            answer(reply, updates::report_poll(connection, *report).await);
        }
        TaskCommand::Claim(due, reply) => {
            answer(reply, updates::claim(connection, due, epoch).await);
        }
        TaskCommand::ClaimOne(one, reply) => {
            answer(reply, updates::claim_one(connection, one, epoch).await);
        }
        TaskCommand::Hide(wallet, task, _, reply) => {
            answer(reply, updates::hide(connection, wallet, task).await);
        }
        TaskCommand::Forget(old, reply) => {
            answer(reply, updates::forget(connection, old).await);
        }
        TaskCommand::ClaimCallbacks(due, reply) => {
            answer(
                reply,
                updates::claim_callbacks(connection, due, epoch).await,
            );
        }
        TaskCommand::ReportCallback(report, reply) => {
            answer(reply, updates::report_callback(connection, report).await);
        }
    }
}

pub(crate) fn answer<T>(reply: Reply<T>, made: Result<T, StoreError>) {
    drop(reply.send(made.map(|made| (made, durable()))));
}

/// A durable decision, for answers that are given after the commit.
fn durable() -> crate::queue::durable::Durable {
    let batch = Batch::durable_on_commit(0);
    batch.mark_durable();
    batch.durable()
}
