//! A worker: one connection of a lane, and the rows of its current batch.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ledger::Micro;
use rand::RngExt as _;

use super::lane::Lane;
use super::lost_commit::{CommitOutcome, LostCommit};
use super::transaction::{
    self, CommitError, HoldOwner, LockedWallets, OpenTransaction, RowsNeeded,
};
use crate::books::{Books, Closed, FailedBatch, Limits, PendingWrite};
use crate::error::{AdmitError, StoreError};
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::postgres::connection::ledger_connection::LedgerConnection;
use crate::queue::command::{Change, Command, Granted};
use crate::queue::command_queue::Queued;
use crate::queue::durable::Batch;
use crate::records::call::{Admitted, Close, IfLost};
use crate::records::ids::{HoldId, KeyId, WalletId};

/// How often a transaction is tried that conflicts with another or loses its connection.
const ATTEMPTS_MAX: u32 = 4;
/// The longest pause between two attempts.
const CONFLICT_PAUSE_MAX: Duration = Duration::from_millis(20);

pub(crate) struct Worker {
    pub(crate) lane: Rc<Lane>,
    pub(crate) connection: LedgerConnection,
    pub(crate) books: Books,
    needed: RowsNeeded,
}

impl Worker {
    pub(crate) fn new(lane: &Rc<Lane>, connection: LedgerConnection, limits: Limits) -> Self {
        let mut books = Books::new(lane.node.epoch(), limits, Arc::clone(&lane.counters));
        books.hold_step = i64::try_from(HoldId::LANES_MAX).unwrap_or(1);
        Self {
            lane: Rc::clone(lane),
            connection,
            books,
            needed: RowsNeeded::default(),
        }
    }

    /// Runs commands in order. Returns those whose wallets others have locked.
    pub(crate) async fn run(
        &mut self,
        commands: Vec<Queued>,
        locked_wallets: LockedWallets,
    ) -> Vec<Queued> {
        let mut left = Vec::new();
        let mut locked = HashSet::new();
        let mut calls = Vec::new();
        for queued in commands {
            if matches!(queued.command, Command::Change(_)) {
                // A change has its own transaction, after the commands before it.
                let before = std::mem::take(&mut calls);
                self.calls(before, locked_wallets, &mut locked, &mut left)
                    .await;
                self.change(queued, locked_wallets, &mut locked, &mut left)
                    .await;
            } else {
                calls.push(queued);
            }
        }
        self.calls(calls, locked_wallets, &mut locked, &mut left)
            .await;
        left
    }

    /// Runs calls in one transaction.
    async fn calls(
        &mut self,
        commands: Vec<Queued>,
        locked_wallets: LockedWallets,
        locked: &mut HashSet<WalletId>,
        left: &mut Vec<Queued>,
    ) {
        if commands.is_empty() {
            return;
        }
        let mut turn = Vec::with_capacity(commands.len());
        for queued in commands {
            let wallet = self.lane.wallet_of(&queued.command);
            if wallet.is_some_and(|wallet| locked.contains(&wallet)) {
                left.push(queued);
            } else {
                turn.push(queued);
            }
        }
        self.collect_needed(&turn);
        let begun = if self.needed.wallets.is_empty() {
            self.books.forget();
            self.books.pending.clear();
            None
        } else {
            match self.begin(locked_wallets).await {
                Ok(begun) => Some(begun),
                Err(failed) if failed.kind() == FailureKind::Locked => {
                    left.extend(turn);
                    return;
                }
                Err(failed) => {
                    self.begin_failed(&failed, turn);
                    return;
                }
            }
        };
        let batch = self.lane.next_batch();
        let mut count: u64 = 0;
        if let Some(begun) = &begun {
            self.books.last_hold = self.lane.last_hold(begun.epoch);
        }
        for queued in turn {
            // A flush waits for the commands that are left.
            let waits = matches!(queued.command, Command::Flush(_)) && !left.is_empty();
            if waits || self.is_locked(&queued.command) {
                locked.extend(self.lane.wallet_of(&queued.command));
                left.push(queued);
                continue;
            }
            count += 1;
            self.apply(queued.command, begun.as_ref(), &batch);
        }
        if begun.is_some() {
            self.lane.set_last_hold(self.books.last_hold);
        }
        match begun {
            Some(begun) => self.end(&begun, &batch, count).await,
            None => batch.mark_durable(),
        }
    }

    /// Collects the rows that commands need.
    fn collect_needed(&mut self, commands: &[Queued]) {
        self.needed.clear();
        let mut state = self.lane.state.borrow_mut();
        for queued in commands {
            if let Some(key) = key_of(&queued.command) {
                if let Some(key) = state.keys.get_mut(key) {
                    self.needed.key(*key);
                }
            } else if let Some(hold) = hold_of(&queued.command)
                && let Some(owners) = state.owners.get(&hold)
            {
                self.needed.hold(hold, *owners);
            }
        }
    }

    /// Whether another transaction holds the lock of the command's wallet.
    fn is_locked(&mut self, command: &Command) -> bool {
        let state = self.lane.state.borrow();
        let wallet = match (key_of(command), hold_of(command)) {
            (Some(key), _) => state.keys.peek(key).map(|key| key.wallet),
            (_, Some(hold)) => state.owners.get(&hold).map(|owners| owners.wallet),
            _ => None,
        };
        wallet.is_some_and(|wallet| self.books.wallets.get_mut(wallet).is_none())
    }

    /// Begins a transaction. Retries after a conflict or a lost connection, because nobody has been answered
    /// yet.
    async fn begin(&mut self, locked_wallets: LockedWallets) -> Result<OpenTransaction, PgError> {
        let mut tried = 0;
        loop {
            tried += 1;
            let epoch = self.lane.node.epoch();
            let begun = match self.connection.session().await {
                Ok(session) => {
                    transaction::begin(
                        session,
                        &mut self.needed,
                        locked_wallets,
                        epoch,
                        &mut self.books,
                    )
                    .await
                }
                Err(failed) => Err(failed),
            };
            let failed = match begun {
                Ok(begun) => return Ok(begun),
                Err(failed) => failed,
            };
            match failed.kind() {
                FailureKind::Disconnected => {
                    self.connection.disconnect();
                    // The connection may have been lost unnoticed. If a new one is lost too, something else is
                    // wrong.
                    if tried >= 2 {
                        return Err(failed);
                    }
                }
                FailureKind::Conflict if tried < ATTEMPTS_MAX => {
                    self.connection.roll_back().await;
                    let pause = rand::rng().random_range(Duration::ZERO..CONFLICT_PAUSE_MAX);
                    tokio::time::sleep(pause).await;
                }
                _ => {
                    self.connection.roll_back().await;
                    return Err(failed);
                }
            }
        }
    }

    /// Keeps the closes, and refuses the other commands as unavailable.
    pub(crate) fn begin_failed(&mut self, failed: &PgError, commands: Vec<Queued>) {
        let changed = self.lane.failed();
        if changed || !commands.is_empty() {
            tracing::error!(error = %failed, "the ledger could not begin a transaction");
        }
        let mut state = self.lane.state.borrow_mut();
        for queued in commands {
            match queued.command {
                Command::Close(closing) => state.retry.push_back(closing),
                other => other.refuse(AdmitError::Unavailable),
            }
        }
    }

    /// Decides a command. If the receiver is gone, the answer is dropped. A dropped grant closes its hold.
    fn apply(&mut self, command: Command, begun: Option<&OpenTransaction>, batch: &Arc<Batch>) {
        match command {
            Command::Admit(mut admit, reply) => {
                if reply.is_closed() {
                    return;
                }
                if !self.lane.is_decidable(admit.key) {
                    drop(reply.send(Err(AdmitError::Unavailable)));
                    return;
                }
                if let Some(begun) = begun {
                    admit.now = begun.now;
                    if !self.lane.node.may_open(begun) {
                        drop(reply.send(Err(AdmitError::Unavailable)));
                        return;
                    }
                }
                let (now, key) = (admit.now, admit.key);
                let answer = self.books.admit(admit).map(|(hold, rates)| {
                    self.add_owner(hold, key);
                    let admitted = Admitted {
                        hold,
                        rates,
                        durable: batch.durable(),
                    };
                    Granted::new(admitted, now, &self.lane.queue)
                });
                drop(reply.send(answer));
            }
            Command::Extend(mut extend, reply) => {
                if let Some(begun) = begun {
                    extend.now = begun.now;
                }
                self.regrow(extend.hold);
                let answer = match self.books.extend(&extend) {
                    Some(Ok(())) => Ok(batch.durable()),
                    Some(Err(refused)) => Err(refused),
                    None => Err(AdmitError::Unavailable),
                };
                drop(reply.send(answer));
            }
            Command::Step(mut stepping, reply) => {
                if let Some(begun) = begun {
                    stepping.now = begun.now;
                }
                self.regrow(stepping.hold);
                let answer = self.books.step(stepping);
                drop(reply.send(answer.unwrap_or(Err(AdmitError::Unavailable))));
            }
            Command::Close(mut closing) => {
                if let Some(begun) = begun {
                    closing.now = begun.now;
                }
                self.close(closing);
            }
            // Not retried when the batch fails: the hold then counts until it is closed.
            Command::Uncount(hold) => self.books.stop_counting(hold),
            Command::Balance(key, reply) if !self.lane.is_decidable(key) => {
                drop(reply.send(Err(StoreError::Unavailable)));
            }
            Command::Balance(key, reply) => {
                let balance = self.books.balance(key);
                drop(reply.send(balance.map(|found| (found, batch.durable()))));
            }
            Command::Flush(reply) => {
                if let Some(reply) = self.lane.keep_flush(reply) {
                    drop(reply.send(batch.durable()));
                }
            }
            // Tasks have their own connections.
            Command::Task(_) => command.refuse(AdmitError::Unavailable),
            Command::Change(_) => unreachable!("a change has a transaction of its own"),
        }
    }

    /// Remembers the owner of a hold as soon as it is decided, so that its close finds it.
    fn add_owner(&mut self, hold: HoldId, key: KeyId) {
        let mut state = self.lane.state.borrow_mut();
        if let Some(key) = state.keys.get_mut(key).copied() {
            let wallet = key.wallet;
            state.owners.insert(hold, HoldOwner { wallet, key });
            self.lane.counters.open_holds.add(1);
        }
    }

    fn close(&mut self, closing: Close) {
        let (hold, charge) = (closing.hold, closing.charge().map(Micro::get));
        if !self.reopen_lost(&closing) {
            tracing::error!(%hold, "a lost hold cannot be opened again");
            self.lane.set_aside([closing]);
            return;
        }
        self.regrow(hold);
        match self.books.close(closing) {
            Closed::Booked => {}
            Closed::Late => {
                self.lane.counters.late_closes.add(1);
                if let Some(charge) = charge {
                    // For reconciliation: this was delivered and is not charged.
                    tracing::warn!(%hold, charge, "a settlement came after the end of its hold");
                }
                self.remove_owners(&[hold]);
            }
            Closed::Unbookable(closing) => {
                tracing::error!(%hold, "a hold could not be closed: the stored amounts do not contain it");
                self.lane.set_aside([closing]);
            }
        }
    }

    /// Reopens the hold of a close, if it was lost with a failed transaction and the call was answered
    /// nevertheless. Returns whether the close can continue.
    fn reopen_lost(&mut self, closing: &Close) -> bool {
        let id = closing.hold;
        let mut state = self.lane.state.borrow_mut();
        let Some(hold) = state.lost.get(&id) else {
            return true;
        };
        let charged = closing.charge().is_some() && closing.if_lost == IfLost::Charge;
        let there = self.books.holds.contains_key(&id);
        if charged && !there && !self.books.reopen(id, hold, closing.now) {
            return false;
        }
        state.lost.remove(&id);
        true
    }

    /// Grows a hold back to its size before its growth was lost with a failed transaction.
    fn regrow(&mut self, hold: HoldId) {
        let reach = self.lane.state.borrow_mut().reached.remove(&hold);
        if let Some(reach) = reach {
            self.books.regrow(hold, reach);
        }
    }

    fn remove_owners(&self, holds: &[HoldId]) {
        let mut state = self.lane.state.borrow_mut();
        for hold in holds {
            if state.owners.remove(hold).is_some() {
                self.lane.counters.open_holds.sub(1);
            }
        }
    }

    /// Commits, and tells everyone concerned how it went.
    async fn end(&mut self, begun: &OpenTransaction, batch: &Arc<Batch>, count: u64) {
        let closed: Vec<HoldId> = self.closed();
        batch.seal();
        match self.commit_calls(begun).await {
            Ok(()) => {
                self.remove_owners(&closed);
                self.count_commit(count);
                batch.mark_durable();
            }
            Err(failure) => {
                tracing::error!(error = %failure.failed, commands = count, "a transaction of the ledger failed");
                let closings = self.roll_back();
                self.lane.counters.commits_failed.add(1);
                self.lane.failed();
                if failure.failed.kind() == FailureKind::Permanent {
                    // One of them makes the transaction fail. Run alone, they show which.
                    self.close_one_by_one(closings).await;
                } else {
                    let mut state = self.lane.state.borrow_mut();
                    for closing in closings.into_iter().rev() {
                        state.retry.push_front(closing);
                    }
                }
                // Last, so that whoever learns of the loss sees the updated counters.
                batch.mark_lost();
            }
        }
    }

    /// Rolls back the books of a failed transaction and returns its closes. Holds that it would have opened are
    /// kept until their calls end.
    fn roll_back(&mut self) -> Vec<Close> {
        let FailedBatch {
            closings,
            lost,
            reached,
        } = self.books.roll_back(&mut PendingWrite::default());
        let mut state = self.lane.state.borrow_mut();
        state.lost.extend(lost);
        state.reached.extend(reached);
        closings
    }

    pub(crate) fn count_commit(&self, count: u64) {
        let counters = &self.lane.counters;
        self.lane.works();
        counters.batches.add(1);
        counters.commands.add(count);
    }

    /// Holds that the batch has closed.
    fn closed(&self) -> Vec<HoldId> {
        let postings = self.books.pending.postings.iter();
        postings
            .filter_map(|posting| posting.columns().closes.map(HoldId::new))
            .collect()
    }

    /// Commits. If the answer is lost, asks for the outcome until it is known or time is up.
    pub(crate) async fn commit(&mut self, begun: &OpenTransaction) -> Result<(), CommitFailure> {
        let committed = match self.connection.open_session() {
            Some(session) => transaction::commit(session, &mut self.books).await,
            None => Err(CommitError::RolledBack(PgError::NoAnswer)),
        };
        let (failed, lost_commit) = match committed {
            Ok(()) => return Ok(()),
            Err(CommitError::RolledBack(failed)) => (failed, None),
            Err(CommitError::AnswerLost(failed)) => {
                let lost_commit = self.connection.lost_commit(&begun.transaction, &self.books);
                match self.connection.outcome(&lost_commit).await {
                    CommitOutcome::Committed => {
                        self.books.count_committed();
                        return Ok(());
                    }
                    CommitOutcome::RolledBack => (failed, None),
                    CommitOutcome::Unknown | CommitOutcome::Unknowable => {
                        (failed, Some(lost_commit))
                    }
                }
            }
        };
        if failed.kind() == FailureKind::Disconnected {
            self.connection.disconnect();
        } else {
            self.connection.roll_back().await;
        }
        Err(CommitFailure {
            failed,
            lost_commit,
        })
    }

    /// Commits a batch of calls. While the outcome of the commit is unknown, asks for it for as long as the
    /// node runs: callers either learn what the ledger says, or wait.
    async fn commit_calls(&mut self, begun: &OpenTransaction) -> Result<(), CommitFailure> {
        let mut committed = self.commit(begun).await;
        while let Err(CommitFailure {
            failed,
            lost_commit,
        }) = &mut committed
            && let Some(asked) = lost_commit
            && !self.lane.queue.is_closed()
        {
            self.lane.note_health(false);
            match self.connection.outcome(asked).await {
                CommitOutcome::Committed => {
                    self.books.count_committed();
                    return Ok(());
                }
                // If a batch that neither opened nor closed a hold was lost, the later closes make up for it.
                CommitOutcome::RolledBack | CommitOutcome::Unknowable => *lost_commit = None,
                CommitOutcome::Unknown => {
                    tracing::error!(error = %failed, "it is not known whether a transaction of the ledger happened");
                }
            }
        }
        committed
    }

    /// Closes each hold in its own transaction, so that a failure affects no other.
    pub(crate) async fn close_one_by_one(&mut self, closings: Vec<Close>) {
        let mut closings = closings.into_iter();
        while let Some(mut closing) = closings.next() {
            self.needed.clear();
            let owners = self.lane.state.borrow().owners.get(&closing.hold).copied();
            let Some(owners) = owners else {
                self.lane.counters.late_closes.add(1);
                continue;
            };
            self.needed.hold(closing.hold, owners);
            let begun = match self.begin(LockedWallets::Wait).await {
                Ok(begun) => begun,
                Err(failed) => {
                    tracing::error!(error = %failed, "a hold could not be closed");
                    self.lane.failed();
                    let mut state = self.lane.state.borrow_mut();
                    state.retry.push_back(closing);
                    state.retry.extend(closings);
                    return;
                }
            };
            let hold = closing.hold;
            closing.now = begun.now;
            self.close(closing);
            // A close that was set aside again keeps its owner.
            let closed = self.closed();
            match self.commit_calls(&begun).await {
                Ok(()) => {
                    self.remove_owners(&closed);
                    self.count_commit(1);
                }
                Err(failure) => {
                    let left = self.roll_back();
                    self.lane.failed();
                    if failure.failed.kind() == FailureKind::Permanent {
                        tracing::error!(error = %failure.failed, %hold, "a hold cannot be closed");
                        self.lane.set_aside(left);
                    } else {
                        self.lane.state.borrow_mut().retry.extend(left);
                    }
                }
            }
        }
    }
}

/// Why a commit failed.
#[derive(Debug)]
pub(crate) struct CommitFailure {
    pub(crate) failed: PgError,
    /// Set if the outcome is unknown.
    pub(crate) lost_commit: Option<LostCommit>,
}

pub(crate) fn key_of(command: &Command) -> Option<KeyId> {
    match command {
        Command::Admit(admit, _) => Some(admit.key),
        Command::Balance(key, _) | Command::Change(Change::Key { key, .. }) => Some(*key),
        _ => None,
    }
}

fn hold_of(command: &Command) -> Option<HoldId> {
    match command {
        Command::Extend(extend, _) => Some(extend.hold),
        Command::Step(stepping, _) => Some(stepping.hold),
        Command::Close(closing) => Some(closing.hold),
        Command::Uncount(hold) => Some(*hold),
        _ => None,
    }
}
