//! The loops of a lane's two workers.

use std::rc::Rc;
use std::time::Duration;

use ledger::Micro;
use rand::RngExt as _;

use super::lane::Lane;
use super::transaction::LockedWallets;
use super::worker::Worker;
use crate::error::AdmitError;
use crate::postgres::node::health::PROBE_EVERY;
use crate::queue::command::Command;
use crate::queue::command_queue::{BatchTiming, Queued, Wake};
use crate::sync::Instant;

/// The shortest pause after the first failure. It doubles with each further failure, up to half of [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How long a store that is being closed keeps trying to book the remaining closes.
const LAST_TRIES: Duration = Duration::from_secs(5);
/// The pause of either worker while a wallet stays locked.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

impl Lane {
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
        // While the node is not ready, no calls arrive, so only a probe can find out that the lane works again.
        if self.state.borrow().failures > 0
            && let Err(failed) = worker.probe().await
        {
            worker.begin_failed(&failed, commands);
            self.count();
            return;
        }
        let commands = worker.load_key_numbers(commands).await;
        let commands = self.queue_behind_parked(commands);
        let left = worker.run(commands, LockedWallets::Skip).await;
        if !left.is_empty() {
            self.park(left);
        }
        self.count();
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
}

/// The pause before the next attempt. It grows with each failure, and has a random part so that lanes and nodes do not
/// retry together.
fn pause(failures: u32) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let longest = PAUSE_MIN
        .saturating_mul(2_u32.saturating_pow(failures.min(10)))
        .min(PAUSE_MAX);
    longest / 2 + rand::rng().random_range(Duration::ZERO..longest / 2)
}
