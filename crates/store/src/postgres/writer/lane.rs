//! A lane: runs the commands of some of the wallets in order.
//!
//! The main worker runs all queued commands in one transaction after another, and never waits for a lock. A wallet that
//! another node has locked is parked with its commands, and the second worker waits for the lock on its own connection.
//! So commands of other wallets do not wait for a busy wallet.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ledger::Micro;
use tokio::sync::Notify;

use super::transaction::{HoldOwner, KeyNumbers};
use crate::books::OpenHold;
use crate::cache::{GenerationalCache, IdMap};
use crate::postgres::node::health::{Component, Health};
use crate::postgres::node::lease::Node;
use crate::queue::command::{Change, Command};
use crate::queue::command_queue::{CommandQueue, Queued};
use crate::queue::durable::{Batch, BatchGuard};
use crate::records::call::Close;
use crate::records::ids::{Epoch, HoldId, KeyId, WalletId};
use crate::settings::Settings;
use crate::stats::Counters;
use crate::sync::Instant;

/// The interval at which closes that were set aside are retried.
const STUCK_PAUSE: Duration = Duration::from_secs(60);

pub(crate) struct Lane {
    pub(super) number: usize,
    pub(crate) queue: Arc<CommandQueue>,
    pub(crate) node: Arc<Node>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) health: Arc<Health>,
    pub(crate) state: RefCell<State>,
    pub(super) batches: Cell<u64>,
    /// The last hold that either of the two workers opened.
    pub(super) last_hold: Cell<HoldId>,
    pub(super) parked: Notify,
    pub(super) settings: LaneSettings,
}

/// Limits on the number of commands in a lane and on their time.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneSettings {
    pub(super) gather: Duration,
    pub(super) call_wait_max: Duration,
    pub(super) change_wait_max: Duration,
    pub(super) waiting_max: usize,
}

/// The state that both workers of a lane share.
pub(crate) struct State {
    /// The row numbers of keys, which never change.
    pub(crate) keys: GenerationalCache<KeyId, KeyNumbers>,
    /// Keys that the last lookup did not find in the database.
    pub(crate) missing_keys: HashSet<KeyId>,
    pub(crate) owners: IdMap<HoldId, HoldOwner>,
    /// Holds of failed transactions whose calls have not ended. There are at most as many as there were calls in flight
    /// when the first commit failed, because no call is admitted until a commit succeeds.
    pub(crate) lost: IdMap<HoldId, OpenHold>,
    /// The amount booked and held by each hold whose growth was lost in a failed transaction. An item is removed when
    /// its hold is next needed.
    pub(crate) lost_extensions: IdMap<HoldId, Micro>,
    /// The numbers of retried closes, lost holds and stuck closes of this lane that were last added to the counters.
    pub(super) counted: [u64; 3],
    /// Wallets that other nodes have locked, with the commands that wait for them, in order of arrival.
    pub(super) parked: VecDeque<Parked>,
    /// Closes of failed transactions, in order.
    pub(crate) retry: VecDeque<Close>,
    /// Closes that fail even in a transaction of their own.
    pub(super) stuck: Vec<Close>,
    pub(super) stuck_due: Option<Instant>,
    /// Flushes that wait until no wallet is parked.
    pub(super) flushes: Vec<tokio::sync::oneshot::Sender<crate::queue::durable::Durable>>,
    pub(crate) failures: u32,
}

pub(super) struct Parked {
    pub(super) wallet: WalletId,
    pub(super) commands: Vec<Queued>,
}

impl Lane {
    pub(crate) fn new(
        number: usize,
        queue: Arc<CommandQueue>,
        node: Arc<Node>,
        counters: Arc<Counters>,
        health: Arc<Health>,
        settings: &Settings,
    ) -> Rc<Self> {
        Rc::new(Self {
            number,
            queue,
            node,
            counters,
            health,
            state: RefCell::new(State {
                keys: GenerationalCache::new(settings.cached_rows_max),
                missing_keys: HashSet::new(),
                owners: IdMap::default(),
                lost: IdMap::default(),
                lost_extensions: IdMap::default(),
                counted: [0; 3],
                parked: VecDeque::new(),
                retry: VecDeque::new(),
                stuck: Vec::new(),
                stuck_due: None,
                flushes: Vec::new(),
                failures: 0,
            }),
            batches: Cell::new(0),
            last_hold: Cell::new(HoldId::new(0)),
            parked: Notify::new(),
            settings: LaneSettings {
                gather: settings.gather,
                call_wait_max: settings.queue_wait_max,
                change_wait_max: settings.lock_wait_max,
                waiting_max: settings.queue_max,
            },
        })
    }

    /// Updates the counters, which are sums over all lanes.
    pub(super) fn count(&self) {
        let mut state = self.state.borrow_mut();
        let waiting = [state.retry.len(), state.lost.len(), state.stuck.len()].map(|it| it as u64);
        let before = std::mem::replace(&mut state.counted, waiting);
        let counters = [
            &self.counters.retried_closes,
            &self.counters.lost_holds,
            &self.counters.stuck_closes,
        ];
        for ((counter, before), now) in counters.into_iter().zip(before).zip(waiting) {
            counter.add(now);
            counter.sub(before);
        }
    }

    /// Records a failure. The next batch begins after a pause and with a probe. Returns whether the lane worked until
    /// now.
    pub(crate) fn failed(&self) -> bool {
        let mut state = self.state.borrow_mut();
        state.failures = state.failures.saturating_add(1);
        self.note_health(false)
    }

    /// Records a success, which ends any earlier failure.
    pub(crate) fn works(&self) {
        self.state.borrow_mut().failures = 0;
        self.note_health(true);
    }

    /// Sets aside closes that fail even alone.
    pub(crate) fn set_aside(&self, closings: impl IntoIterator<Item = Close>) {
        let mut state = self.state.borrow_mut();
        state.stuck.extend(closings);
        if !state.stuck.is_empty() {
            state.stuck_due.get_or_insert(Instant::now() + STUCK_PAUSE);
        }
        drop(state);
        self.count();
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Records whether the lane works. Returns whether its state has changed.
    pub(crate) fn note_health(&self, works: bool) -> bool {
        let changed = self.health.note(Component::Lane(self.number), works);
        self.counters.failing.set(!self.health.lanes_work());
        changed
    }

    /// Whether the wallet of a key is known, or the key is known not to exist.
    pub(crate) fn is_decidable(&self, key: KeyId) -> bool {
        let state = self.state.borrow();
        state.keys.peek(key).is_some() || state.missing_keys.contains(&key)
    }

    pub(crate) fn last_hold(&self, epoch: Epoch) -> HoldId {
        let last = self.last_hold.get();
        if last.epoch() == epoch {
            last
        } else {
            HoldId::first_of_lane(epoch, self.number)
        }
    }

    pub(crate) fn set_last_hold(&self, hold: HoldId) {
        self.last_hold.set(hold);
    }

    pub(crate) fn next_batch(&self) -> BatchGuard {
        self.batches.set(self.batches.get() + 1);
        Batch::durable_on_commit(self.batches.get())
    }

    /// The wallet that a command locks. `None` if it locks none, or if the lane does not know the wallet.
    pub(crate) fn wallet_of(&self, command: &Command) -> Option<WalletId> {
        wallet_of(&self.state.borrow(), command)
    }
}

pub(super) fn wallet_of(state: &State, command: &Command) -> Option<WalletId> {
    let by_hold = |hold: HoldId| state.owners.get(&hold).map(|owners| owners.key.wallet_id);
    match command {
        Command::Admit(admit, _) => Some(admit.wallet),
        Command::Extend(extend, _) => by_hold(extend.hold),
        Command::Step(stepping, _) => by_hold(stepping.hold),
        Command::Close(closing) => by_hold(closing.hold),
        Command::Uncount(hold) => by_hold(*hold),
        Command::Balance(key, ..) => state.keys.peek(*key).map(|key| key.wallet_id),
        Command::Change(change) => match change {
            Change::Wallet { wallet, .. } => Some(*wallet),
            Change::Key { key, .. } => state.keys.peek(*key).map(|key| key.wallet_id),
            Change::CreateWallet { .. }
            | Change::CreateKey { .. }
            | Change::Access { .. }
            | Change::PriceVersion { .. }
            | Change::CostVersion { .. }
            | Change::AuditAction { .. }
            | Change::Catalog { .. }
            | Change::Import { .. }
            | Change::Rule { .. } => None,
        },
        Command::Task(_) | Command::Alert(_) | Command::Flush(_) => None,
    }
}
