//! Writes the row of a task that this node has claimed: changes, renewals of the lease, and the end.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use ledger::PriceCard;
use protocol::video::{Outcome, RunningState};
use store::{
    Basis, Claim, ClaimRenewal, End, JournalRow, RunningTaskState, TaskEnd, TaskPollReport, TaskRow,
};

use super::backoff;
use super::billing::{self, TaskCharge};
use crate::clock;
use crate::engine::Engine;

/// The changes to a task that continues.
#[derive(Default)]
pub(super) struct TaskChanges {
    pub(super) running_state: Option<RunningState>,
    pub(super) retry_after: Option<Duration>,
    pub(super) is_missing: bool,
    /// Whether the next poll is due immediately.
    pub(super) is_urgent: bool,
}

impl TaskChanges {
    /// No changes, and the next poll is due immediately.
    pub(super) fn soon() -> Self {
        Self {
            is_urgent: true,
            ..Self::default()
        }
    }
}

impl Engine {
    /// Runs work that may take longer than a lease, and renews the lease in the meantime. Returns `None` if the node is
    /// stopping or another node may have claimed the task. In that case the work is dropped unfinished.
    pub(super) async fn while_claimed<T>(
        &self,
        claim: Claim,
        lease: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        let mut renewed = Instant::now();
        loop {
            let renewal = tokio::time::sleep(lease / 3);
            tokio::select! {
                done = &mut work => return Some(done),
                () = self.shutdown.wait() => return None,
                () = renewal => {}
            }
            let sent_at = Instant::now();
            match self
                .store
                .renew_claim(ClaimRenewal::claim(claim, lease, clock::steady()))
                .await
            {
                Ok(true) => renewed = sent_at,
                Err(error) if renewed.elapsed() < lease => {
                    tracing::warn!(%error, task = %claim.task, "the lease of a task could not be renewed");
                }
                Ok(false) | Err(_) => return None,
            }
        }
    }

    /// Writes the changes of a task that continues, and gives up the claim.
    pub(super) async fn save_and_unclaim(&self, row: &TaskRow, changes: TaskChanges) {
        let settings = &self.settings.tasks;
        let polls = row.polls.saturating_add(1);
        let pause = backoff::poll_pause(
            settings.poll_first,
            settings.poll_max,
            polls,
            changes.retry_after,
        );
        let report = TaskPollReport {
            claim: row.claim,
            running_state: changes.running_state.map(running_state),
            next_in: if changes.is_urgent {
                Duration::ZERO
            } else {
                pause
            },
            missing: changes.is_missing,
            now: clock::steady(),
        };
        if let Err(error) = self.store.report_task_poll(report).await {
            tracing::warn!(%error, task = %row.claim.task, "the state of a task could not be stored; its lease ends by itself");
        }
    }

    /// Ends a task with the charge that results from the upstream's report.
    pub(super) async fn end_as_reported(&self, row: &TaskRow, outcome: Outcome) {
        let Some(card) = self.card_of(row).await else {
            // The price card is in the store, which did not answer.
            return self.save_and_unclaim(row, TaskChanges::default()).await;
        };
        let debt_limit = self.settings.debt_limit;
        let bill = match billing::charge_of(&card, &row.model, &row.bound, &outcome, debt_limit) {
            TaskCharge::Nothing => return self.end(row, outcome, End::Released).await,
            TaskCharge::Unpriceable => return self.end(row, outcome, End::Abandoned).await,
            TaskCharge::Bill(bill) => bill,
        };
        let cost = self.cost_card_of(row);
        // The hold of a task reserves no tokens.
        let end = bill.end(row.price_version, None, cost.as_deref());
        let late = late_charge(row, &end, &card);
        if self.end_if_claimed(row, outcome, end).await {
            bill.count(&late.model, &card, self.metrics());
            self.journal_late_charge(late);
        }
    }

    /// Ends a task: writes settlement, snapshot and callback in one transaction (T4).
    pub(super) async fn end(&self, row: &TaskRow, outcome: Outcome, end: End) {
        self.end_if_claimed(row, outcome, end).await;
    }

    /// Ends a task. Returns whether it was this node that ended it.
    async fn end_if_claimed(&self, row: &TaskRow, outcome: Outcome, end: End) -> bool {
        let ended = TaskEnd {
            claim: row.claim,
            status: outcome.status.into(),
            end,
            snapshot: outcome.snapshot.into(),
            now: clock::steady(),
        };
        match self.store.end_task(ended).await {
            // `false` means that another node has ended the task.
            Ok(is_ended) => is_ended,
            Err(error) => {
                tracing::warn!(%error, task = %row.claim.task, "the end of a task could not be stored; its lease ends by itself");
                false
            }
        }
    }
}

/// The journal row for the charge of a task, whose creation was journaled without a charge.
fn late_charge(row: &TaskRow, end: &End, card: &PriceCard) -> JournalRow {
    let mut late = JournalRow {
        at: clock::now(),
        wallet: Some(row.wallet),
        key: row.key,
        endpoint: row.endpoint.to_string().into(),
        model: (&*row.model).into(),
        channel: row.upstream.as_ref().map(|it| (&*it.channel).into()),
        hold: Some(row.hold),
        is_late_charge: true,
        ..JournalRow::default()
    };
    if let End::Settled {
        charge,
        meter,
        cost,
        basis,
        ..
    } = end
    {
        late.charge = match (basis, ledger::hold_of(card, &row.bound)) {
            // The ledger charges our own count up to the hold.
            (Basis::Counted, Ok(held)) => held.min(*charge),
            _ => *charge,
        };
        late.meter = Some(meter.clone());
        late.cost = cost.as_deref().map(|cost| cost.amount);
    }
    late
}

/// Whether the task has exceeded its lifetime.
pub(super) fn is_over(row: &TaskRow) -> bool {
    row.claimed_at >= row.expires_at
}

/// Converts the state of a task to the form in its row.
pub(super) fn running_state(running_state: RunningState) -> RunningTaskState {
    RunningTaskState {
        status: running_state.status.into(),
        progress: running_state.progress,
        snapshot: running_state.snapshot.into(),
    }
}
