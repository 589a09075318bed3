//! Commits a batch, and finds out the outcome when the answer is lost.

use std::sync::Arc;

use super::lost_commit::{CommitOutcome, LostCommit};
use super::transaction::{self, CommitError, OpenTransaction};
use super::worker::Worker;
use crate::books::{FailedBatch, PendingWrite};
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::queue::durable::Batch;
use crate::records::call::Close;
use crate::records::ids::HoldId;

impl Worker {
    /// Commits, and reports the outcome to all waiting callers.
    pub(super) async fn end(&mut self, begun: &OpenTransaction, batch: &Arc<Batch>, count: u64) {
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
                    // One of the closes makes the transaction fail. Running each alone shows which one.
                    self.close_one_by_one(closings).await;
                } else {
                    let mut state = self.lane.state.borrow_mut();
                    for closing in closings.into_iter().rev() {
                        state.retry.push_front(closing);
                    }
                }
                // Marked last, so that a caller that is notified of the loss sees the updated counters.
                batch.mark_lost();
            }
        }
    }

    /// Rolls back the books of a failed transaction and returns its closes. The holds that the transaction would have
    /// opened are kept until their calls end.
    pub(super) fn roll_back(&mut self) -> Vec<Close> {
        let FailedBatch {
            closings,
            lost,
            lost_extensions,
        } = self.books.roll_back(&mut PendingWrite::default());
        let mut state = self.lane.state.borrow_mut();
        state.lost.extend(lost);
        state.lost_extensions.extend(lost_extensions);
        closings
    }

    pub(crate) fn count_commit(&self, count: u64) {
        let counters = &self.lane.counters;
        self.lane.works();
        counters.batches.add(1);
        counters.commands.add(count);
    }

    pub(super) fn closed(&self) -> Vec<HoldId> {
        let postings = self.books.pending.postings.iter();
        postings
            .filter_map(|posting| posting.columns().closes.map(HoldId::new))
            .collect()
    }

    /// Commits. If the answer is lost, asks for the outcome until it is known or the time is up.
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

    /// Commits a batch of calls. While the outcome is unknown, asks for it as long as the node runs, so that callers
    /// wait until the outcome can be reported.
    pub(super) async fn commit_calls(
        &mut self,
        begun: &OpenTransaction,
    ) -> Result<(), CommitFailure> {
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
                // A batch without a proof neither opened nor closed a hold. If the batch was lost, the later closes of
                // its holds make up for the loss.
                CommitOutcome::RolledBack | CommitOutcome::Unknowable => *lost_commit = None,
                CommitOutcome::Unknown => {
                    tracing::error!(error = %failed, "it is not known whether a transaction of the ledger happened");
                }
            }
        }
        committed
    }
}

#[derive(Debug)]
pub(crate) struct CommitFailure {
    pub(crate) failed: PgError,
    /// Set if the outcome of the commit is unknown.
    pub(crate) lost_commit: Option<LostCommit>,
}
