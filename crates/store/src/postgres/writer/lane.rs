//! A lane: runs the commands of some of the wallets, in order.
//!
//! Its main worker puts everything that is queued into one transaction after another, and never waits for a
//! lock. A wallet that another node has locked is parked with its commands, and the second worker waits for it
//! on its own connection. So commands of other wallets do not wait for a busy one.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ledger::Micro;
use rand::RngExt as _;
use tokio::sync::Notify;

use super::transaction::{HoldOwner, KeyNumbers, LockedWallets};
use super::worker::Worker;
use crate::books::OpenHold;
use crate::cache::{Generations, IdMap};
use crate::error::AdmitError;
use crate::postgres::node::health::{Component, Health, PROBE_EVERY};
use crate::postgres::node::lease::Node;
use crate::queue::command::{Change, Command};
use crate::queue::command_queue::{BatchTiming, CommandQueue, Queued, Wake};
use crate::queue::durable::{Batch, BatchGuard};
use crate::records::call::Close;
use crate::records::ids::{Epoch, HoldId, KeyId, WalletId};
use crate::settings::Settings;
use crate::stats::Counters;
use crate::sync::Instant;

/// The first pause after a failure. It doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How often a close that fails alone is retried.
const STUCK_PAUSE: Duration = Duration::from_secs(60);
/// How long a store that is being closed tries to book the remaining closes.
const LAST_TRIES: Duration = Duration::from_secs(5);
/// How long the second worker pauses when a wallet stays locked.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Lane {
    number: usize,
    pub(crate) queue: Arc<CommandQueue>,
    pub(crate) node: Arc<Node>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) health: Arc<Health>,
    pub(crate) state: RefCell<State>,
    batches: Cell<u64>,
    /// The last hold that either worker opened.
    last_hold: Cell<HoldId>,
    parked: Notify,
    settings: LaneSettings,
}

/// How long commands wait in a lane, and how many may wait.
#[derive(Debug, Clone, Copy)]
struct LaneSettings {
    gather: Duration,
    call_wait_max: Duration,
    change_wait_max: Duration,
    waiting_max: usize,
}

/// The state that both workers of a lane share.
pub(crate) struct State {
    /// The numbers of keys, which never change.
    pub(crate) keys: Generations<KeyId, KeyNumbers>,
    /// Keys of the last query that the database does not have.
    pub(crate) missing_keys: HashSet<KeyId>,
    /// The owners of the open holds of this lane.
    pub(crate) owners: IdMap<HoldId, HoldOwner>,
    /// Holds of failed transactions whose calls have not ended. There are never more of them than calls in
    /// flight when the first commit failed, because nobody is admitted until a commit succeeds.
    pub(crate) lost: IdMap<HoldId, OpenHold>,
    /// How far each hold reached whose growth was lost in a failed transaction. Removed when the hold is next
    /// needed.
    pub(crate) reached: IdMap<HoldId, Micro>,
    /// The numbers of closes to retry, lost holds and closes set aside that were last added to the counters.
    counted: [u64; 3],
    /// Wallets that other nodes have locked, with the commands that wait for them, in order of arrival.
    parked: VecDeque<Parked>,
    /// Closes of failed transactions, in order.
    pub(crate) retry: VecDeque<Close>,
    /// Closes that fail even alone.
    stuck: Vec<Close>,
    stuck_due: Option<Instant>,
    /// Flushes that wait until nothing is parked.
    flushes: Vec<tokio::sync::oneshot::Sender<crate::queue::durable::Durable>>,
    pub(crate) failures: u32,
}

struct Parked {
    wallet: WalletId,
    commands: Vec<Queued>,
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
                keys: Generations::new(settings.cached_rows_max),
                missing_keys: HashSet::new(),
                owners: IdMap::default(),
                lost: IdMap::default(),
                reached: IdMap::default(),
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

    /// Runs until the queue is closed and everything in it is booked.
    pub(crate) async fn run(self: Rc<Self>, mut worker: Worker) {
        let now = Instant::now();
        let mut timing = BatchTiming {
            not_before: now,
            enough: usize::MAX,
            linger_until: now,
            due: None,
            opens_ahead: false,
        };
        let mut last_work = now;
        let mut probe_at = now;
        loop {
            let probes = self.node.is_serving() && !self.queue.is_closed();
            let wake = tokio::select! {
                biased;
                wake = self.queue.wait_as_task(&timing) => wake,
                () = tokio::time::sleep_until(probe_at.into()), if probes => {
                    if let Err(failed) = worker.probe().await {
                        worker.begin_failed(&failed, Vec::new());
                    }
                    probe_at = Instant::now() + PROBE_EVERY;
                    timing = self.timing();
                    continue;
                }
            };
            if wake == Wake::End {
                let parked = !self.state.borrow().parked.is_empty();
                if !parked || last_work.elapsed() > LAST_TRIES {
                    break;
                }
                tokio::time::sleep(LOCKED_PAUSE).await;
                continue;
            }
            let batches = self.batches.get();
            self.work(&mut worker).await;
            probe_at = Instant::now() + PROBE_EVERY;
            if self.batches.get() > batches || !self.queue.is_closed() {
                last_work = Instant::now();
            } else if last_work.elapsed() > LAST_TRIES {
                break;
            }
            timing = self.timing();
        }
        self.queue.close();
        let mut queued = Vec::new();
        self.queue.drain(&mut queued);
        let mut state = self.state.borrow_mut();
        queued.extend(state.parked.drain(..).flat_map(|parked| parked.commands));
        for queued in queued {
            match queued.command {
                Command::Close(closing) => state.retry.push_back(closing),
                other => other.refuse(AdmitError::Unavailable),
            }
        }
        for closing in state.retry.iter().chain(&state.stuck) {
            let (hold, charge) = (closing.hold, closing.charge().map(Micro::get));
            let request_id = state.lost.get(&hold).map(|hold| hold.request_id);
            tracing::error!(
                %hold,
                charge,
                request_id = request_id.as_deref(),
                "a call could not be closed in the ledger; another node or start closes its hold as abandoned, if there is one"
            );
        }
    }

    async fn work(&self, worker: &mut Worker) {
        let stuck = {
            let mut state = self.state.borrow_mut();
            let due = state.stuck_due.is_some_and(|due| Instant::now() >= due);
            if due {
                state.stuck_due = None;
                std::mem::take(&mut state.stuck)
            } else {
                Vec::new()
            }
        };
        if !stuck.is_empty() {
            worker.close_one_by_one(stuck).await;
        }
        let mut drained = Vec::new();
        self.queue.drain(&mut drained);
        let at = Instant::now();
        let retry = std::mem::take(&mut self.state.borrow_mut().retry);
        let mut commands: Vec<Queued> = retry
            .into_iter()
            .map(|closing| Queued {
                command: Command::Close(closing),
                at,
            })
            .collect();
        commands.append(&mut drained);
        // While the node is not ready no calls arrive, so only a probe can find out that it is ready again.
        if self.state.borrow().failures > 0
            && let Err(failed) = worker.probe().await
        {
            worker.begin_failed(&failed, commands);
            self.count();
            return;
        }
        let commands = worker.load_key_numbers(commands).await;
        let commands = self.behind_parked(commands);
        let left = worker.run(commands, LockedWallets::Skip).await;
        if !left.is_empty() {
            self.park(left);
        }
        self.count();
    }

    /// Updates the counters, which are sums over all lanes.
    fn count(&self) {
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

    /// Records a failure: the next batch begins after a pause, and with a probe. Returns whether the lane
    /// worked until now.
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

    fn timing(&self) -> BatchTiming {
        let now = Instant::now();
        let state = self.state.borrow();
        let not_before = now + pause(state.failures);
        let retry_due = (!state.retry.is_empty() || state.failures > 0).then_some(not_before);
        BatchTiming {
            not_before,
            enough: usize::MAX,
            linger_until: now + self.settings.gather,
            due: retry_due.into_iter().chain(state.stuck_due).min(),
            opens_ahead: false,
        }
    }

    /// Waits for locked wallets, one after the other, until the lane ends.
    pub(crate) async fn wait_for_locks(self: Rc<Self>, mut worker: Worker) {
        loop {
            let next = self.next_parked();
            let Some((wallet, commands)) = next else {
                self.parked.notified().await;
                continue;
            };
            let left = worker.run(commands, LockedWallets::Wait).await;
            let stays = !left.is_empty();
            self.unpark(wallet, left);
            if stays {
                tokio::time::sleep(LOCKED_PAUSE).await;
            }
        }
    }

    /// Adds commands of parked wallets to those that already wait. Returns the others.
    fn behind_parked(&self, commands: Vec<Queued>) -> Vec<Queued> {
        if self.state.borrow().parked.is_empty() {
            return commands;
        }
        let mut free = Vec::with_capacity(commands.len());
        for queued in commands {
            let wallet = self.wallet_of(&queued.command);
            let mut state = self.state.borrow_mut();
            let behind = wallet.and_then(|wallet| {
                let mut parked = state.parked.iter_mut();
                parked.find(|parked| parked.wallet == wallet)
            });
            match behind {
                Some(parked) => parked.commands.push(queued),
                None => free.push(queued),
            }
        }
        free
    }

    fn park(&self, left: Vec<Queued>) {
        let mut state = self.state.borrow_mut();
        let mut waiting: usize = state
            .parked
            .iter()
            .map(|parked| parked.commands.len())
            .sum();
        for queued in left {
            if let Command::Flush(reply) = queued.command {
                state.flushes.push(reply);
                continue;
            }
            let Some(wallet) = wallet_of(&state, &queued.command) else {
                continue;
            };
            if waiting >= self.settings.waiting_max && matches!(queued.command, Command::Admit(..))
            {
                queued.command.refuse(AdmitError::Busy);
                continue;
            }
            waiting += 1;
            if let Some(parked) = state
                .parked
                .iter_mut()
                .find(|parked| parked.wallet == wallet)
            {
                parked.commands.push(queued);
            } else {
                let commands = vec![queued];
                state.parked.push_back(Parked { wallet, commands });
            }
        }
        drop(state);
        self.parked.notify_one();
    }

    /// The commands of the wallet that has waited longest. The wallet stays parked, so that later commands
    /// queue behind them.
    fn next_parked(&self) -> Option<(WalletId, Vec<Queued>)> {
        let mut state = self.state.borrow_mut();
        let parked = state.parked.front_mut()?;
        Some((parked.wallet, std::mem::take(&mut parked.commands)))
    }

    /// Removes the first parked wallet. Parks it again, at the end, if commands are left.
    fn unpark(&self, wallet: WalletId, mut left: Vec<Queued>) {
        let now = Instant::now();
        let mut state = self.state.borrow_mut();
        let Some(parked) = state.parked.pop_front() else {
            return;
        };
        left.extend(parked.commands);
        let (old, kept): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|queued| self.is_expired(queued, now));
        if !kept.is_empty() {
            state.parked.push_back(Parked {
                wallet,
                commands: kept,
            });
        }
        let flushes = if state.parked.is_empty() {
            std::mem::take(&mut state.flushes)
        } else {
            Vec::new()
        };
        drop(state);
        for queued in old {
            queued.command.refuse(AdmitError::Busy);
        }
        for flush in flushes {
            let batch = self.next_batch();
            batch.mark_durable();
            // A receiver that is gone needs no answer.
            drop(flush.send(batch.durable()));
        }
    }

    fn is_expired(&self, queued: &Queued, now: Instant) -> bool {
        let waited = now.saturating_duration_since(queued.at);
        match queued.command {
            Command::Admit(..) | Command::Extend(..) | Command::Step(..) | Command::Balance(..) => {
                waited > self.settings.call_wait_max
            }
            Command::Change(..) | Command::Task(..) => waited > self.settings.change_wait_max,
            Command::Close(..) | Command::Uncount(..) | Command::Flush(..) => false,
        }
    }

    /// Keeps a flush until nothing is parked. Returns it if nothing is parked now.
    pub(crate) fn keep_flush(
        &self,
        flush: tokio::sync::oneshot::Sender<crate::queue::durable::Durable>,
    ) -> Option<tokio::sync::oneshot::Sender<crate::queue::durable::Durable>> {
        let mut state = self.state.borrow_mut();
        if state.parked.is_empty() {
            return Some(flush);
        }
        state.flushes.push(flush);
        None
    }

    /// Sets aside closes that fail alone.
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

    /// Records whether the lane works. Returns whether that has changed.
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

    /// The last hold that this lane opened in an epoch.
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

    /// The wallet that a command locks. `None` if it needs no row.
    pub(crate) fn wallet_of(&self, command: &Command) -> Option<WalletId> {
        wallet_of(&self.state.borrow(), command)
    }
}

fn wallet_of(state: &State, command: &Command) -> Option<WalletId> {
    let by_hold = |hold: HoldId| state.owners.get(&hold).map(|owners| owners.key.wallet_id);
    match command {
        Command::Admit(admit, _) => Some(admit.wallet),
        Command::Extend(extend, _) => by_hold(extend.hold),
        Command::Step(stepping, _) => by_hold(stepping.hold),
        Command::Close(closing) => by_hold(closing.hold),
        Command::Uncount(hold) => by_hold(*hold),
        Command::Balance(key, _) => state.keys.peek(*key).map(|key| key.wallet_id),
        Command::Change(change) => match change {
            Change::Wallet { wallet, .. } => Some(*wallet),
            Change::Key { key, .. } => state.keys.peek(*key).map(|key| key.wallet_id),
            Change::CreateWallet { .. }
            | Change::CreateKey { .. }
            | Change::PriceVersion { .. } => None,
        },
        Command::Task(_) | Command::Flush(_) => None,
    }
}

/// Grows with each failure, with a random part so that lanes and nodes do not retry together.
fn pause(failures: u32) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let longest = PAUSE_MIN
        .saturating_mul(2_u32.saturating_pow(failures.min(10)))
        .min(PAUSE_MAX);
    longest / 2 + rand::rng().random_range(Duration::ZERO..longest / 2)
}
