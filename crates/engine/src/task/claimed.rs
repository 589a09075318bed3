//! What the node that has claimed a task writes about it: notes, renewals and the end.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use protocol::video::{Outcome, Standing};
use store::{Claim, End, TaskEnd, TaskKept, TaskNote, TaskRow, TaskStanding};

use super::{backoff, billing};
use crate::clock;
use crate::engine::Engine;

/// What is noted about a task that continues.
#[derive(Default)]
pub(super) struct PollNote {
    pub(super) standing: Option<Standing>,
    pub(super) retry_after: Option<Duration>,
    pub(super) is_missing: bool,
    /// Whether the next poll is due at once.
    pub(super) is_urgent: bool,
}

impl PollNote {
    /// Nothing new, and the next poll at once.
    pub(super) fn soon() -> Self {
        Self {
            is_urgent: true,
            ..Self::default()
        }
    }
}

impl Engine {
    /// Runs work that may take longer than a lease, and renews the lease meanwhile. Returns `None` if the node is
    /// stopping or another node may have the task; then nothing may be written.
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
            let asked = Instant::now();
            match self
                .store
                .keep_task(TaskKept::claim(claim, lease, clock::steady()))
                .await
            {
                Ok(true) => renewed = asked,
                Err(error) if renewed.elapsed() < lease => {
                    tracing::warn!(%error, task = %claim.task, "a claim could not be renewed");
                }
                Ok(false) | Err(_) => return None,
            }
        }
    }

    /// Notes a task that continues, and returns the claim.
    pub(super) async fn note(&self, row: &TaskRow, seen: PollNote) {
        let settings = &self.settings.tasks;
        let polls = row.polls.saturating_add(1);
        let pause = backoff::poll_pause(
            settings.poll_first,
            settings.poll_max,
            polls,
            seen.retry_after,
        );
        let note = TaskNote {
            claim: row.claim,
            standing: seen.standing.map(standing),
            next_in: if seen.is_urgent {
                Duration::ZERO
            } else {
                pause
            },
            missing: seen.is_missing,
            now: clock::steady(),
        };
        if let Err(error) = self.store.note_task(note).await {
            tracing::warn!(%error, task = %row.claim.task, "a task could not be noted; its claim ends by itself");
        }
    }

    /// Ends a task with the charge that follows from its upstream's report.
    pub(super) async fn end_as_reported(&self, row: &TaskRow, outcome: Outcome) {
        match self.card_of(row).await {
            Some(card) => {
                let cost = self.cost_card_of(row);
                let end = billing::end_of(&card, cost.as_deref(), row, &outcome);
                self.end(row, outcome, end).await;
            }
            // The price card is in the store, which does not answer now.
            None => self.note(row, PollNote::default()).await,
        }
    }

    /// Settlement, snapshot and callback, in one transaction (T4).
    pub(super) async fn end(&self, row: &TaskRow, outcome: Outcome, end: End) {
        let ended = TaskEnd {
            claim: row.claim,
            status: outcome.status.into(),
            end: end.clone(),
            snapshot: outcome.snapshot.into(),
            now: clock::steady(),
        };
        match self.store.end_task(ended).await {
            Ok(true) => self.count_settled(&end),
            // Another node has ended it.
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, task = %row.claim.task, "a task could not be ended; its claim ends by itself");
            }
        }
    }
}

/// Whether the lifetime of the task is over.
pub(super) fn is_over(row: &TaskRow) -> bool {
    row.claimed_at >= row.expires_at
}

/// The state of a task, as it is stored.
pub(super) fn standing(standing: Standing) -> TaskStanding {
    TaskStanding {
        status: standing.status.into(),
        progress: standing.progress,
        snapshot: standing.snapshot.into(),
    }
}
