//! A worker: one connection of a lane, and the rows of its current batch.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;

use super::lane::Lane;
use super::transaction::{self, LockedWallets, OpenTransaction, RowsNeeded};
use crate::books::{Books, Limits};
use crate::error::AdmitError;
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::postgres::connection::ledger_connection::LedgerConnection;
use crate::queue::command::{Change, Command};
use crate::queue::command_queue::Queued;
use crate::records::ids::{HoldId, KeyId, WalletId};

/// The maximum number of attempts of a conflicting transaction. After a lost connection, the maximum is two.
const ATTEMPTS_MAX: u32 = 4;
/// The maximum pause between two attempts.
const CONFLICT_PAUSE_MAX: Duration = Duration::from_millis(20);

pub(crate) struct Worker {
    pub(crate) lane: Rc<Lane>,
    pub(crate) connection: LedgerConnection,
    pub(crate) books: Books,
    pub(super) needed: RowsNeeded,
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

    /// Runs commands in order. Returns those whose wallets other transactions have locked.
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
                // A change has its own transaction, which follows the transaction of earlier commands.
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

    /// Runs commands other than changes in one transaction.
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
            // A flush waits for the commands that are left over.
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

    /// Begins a transaction. Retries after a conflict or a lost connection, because no caller has been answered yet.
    pub(super) async fn begin(
        &mut self,
        locked_wallets: LockedWallets,
    ) -> Result<OpenTransaction, PgError> {
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
                    // The connection may have been lost earlier without being noticed. If a new one is lost too, the
                    // cause is different.
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
}

pub(crate) fn key_of(command: &Command) -> Option<KeyId> {
    match command {
        Command::Admit(admit, _) => Some(admit.key),
        Command::Balance(key, ..) | Command::Change(Change::Key { key, .. }) => Some(*key),
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
