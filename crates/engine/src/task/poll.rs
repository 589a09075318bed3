//! Polls tasks: claims those that are due, polls their upstreams, and updates or ends them.

use std::sync::Arc;
use std::time::Duration;

use protocol::video::{Cause, PollResult, Task};
use store::{End, TaskRow, TaskUpstream};
use tokio::sync::Semaphore;
use upstream::{Endpoint, UpstreamRequest};

use super::backoff;
use super::claimed::{TaskChanges, is_over};
use super::copy_media;
use super::poll_answer::PollAnswer;
use super::protocols::TaskProtocol;
use super::send::UNKNOWN;
use crate::call::attempt::Attempt;
use crate::call::collect_body::CollectError;
use crate::clock;
use crate::engine::Engine;

const POLLS_MAX: usize = 256;
/// The maximum number of tasks that are claimed at a time. A claim blocks the ledger writer.
const CLAIMS_MAX: u32 = 64;
/// How long to wait for more free slots after the first, so that claims come in batches.
const PLACES_PAUSE: Duration = Duration::from_millis(10);
/// The time limit of a poll is its lease divided by this. So the lease outlasts the poll and the write of its result
/// (T7).
const POLL_SHARE: u32 = 3;
/// The maximum size of a poll's answer, which may contain the video itself.
const POLL_BYTES_MAX: usize = 64 << 20;
/// The message for a video beyond `POLL_BYTES_MAX`. In base64, three bytes become four.
const TOO_LARGE: &str = "The video is larger than 48 MiB and could not be kept.";
/// A task counts as gone after this many "no such task" answers over this time (T11).
const MISSING_MIN: u32 = 3;
const MISSING_MS_MIN: i64 = 5 * 60 * 1000;
/// The pause after the store has failed.
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);

/// The result of a poll, and the pause that the upstream asks for.
pub(super) struct PollReport {
    pub(super) polled: PollResult,
    pub(super) retry_after: Option<Duration>,
}

impl PollReport {
    /// The result of a poll that says nothing about the task.
    pub(super) fn unclear() -> Self {
        Self {
            polled: PollResult::Unclear,
            retry_after: None,
        }
    }
}

pub(super) enum TaskReply {
    /// The status, the requested pause and the body of an answer.
    Answered(u16, Option<Duration>, PollAnswer),
    /// The answer contains a video that is too large for us. Another poll would return the same answer.
    TooLarge,
    /// There was no answer.
    Nothing,
}

impl TaskReply {
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Answered(status, _, _) => Some(*status),
            Self::TooLarge => Some(200),
            Self::Nothing => None,
        }
    }
}

impl Engine {
    /// Polls tasks for as long as the future is polled. The engine waits for running polls at shutdown.
    pub async fn poll_tasks(self: Arc<Self>) {
        let places = Arc::new(Semaphore::new(POLLS_MAX));
        let look_every = backoff::look_every(self.settings.tasks.poll_first);
        let lease = self.settings.tasks.lease;
        loop {
            let free = u32::try_from(places.available_permits()).unwrap_or(0);
            if free == 0 {
                // One free slot is enough to continue, because slow upstreams may occupy the others for a long time.
                if places.acquire().await.is_err() {
                    return;
                }
                tokio::time::sleep(PLACES_PAUSE).await;
                continue;
            }
            let count = free.min(CLAIMS_MAX);
            match self.store.claim_tasks(count, lease, clock::steady()).await {
                Ok(due) if due.is_empty() => tokio::time::sleep(look_every).await,
                Ok(due) => {
                    for row in due {
                        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                            return;
                        };
                        let engine = Arc::clone(&self);
                        self.tasks.spawn(async move {
                            engine.run_step(row).await;
                            drop(place);
                        });
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "due tasks cannot be claimed");
                    tokio::time::sleep(TROUBLE_PAUSE).await;
                }
            }
        }
    }

    async fn run_step(&self, mut row: TaskRow) {
        let Some(protocol) = TaskProtocol::find(&row.protocol) else {
            tracing::error!(task = %row.claim.task, protocol = &*row.protocol, "a task of an unknown protocol");
            return self.save_and_unclaim(&row, TaskChanges::default()).await;
        };
        if let Some(delivery) = copy_media::stored_delivery(&row) {
            return self.copy_and_end(&mut row, protocol, delivery).await;
        }
        let name = row.claim.task.to_string();
        let task = self.task_of(&row, &name);
        let (Some(upstream), Some(endpoint)) = (&row.upstream, protocol.poll) else {
            // The creating node died before it could write the upstream's answer. The creation is not sent again (T3).
            let outcome = protocol
                .video
                .write_failed(&task, Cause::Ambiguous, UNKNOWN);
            return self.end(&row, outcome, End::Abandoned).await;
        };
        let report = self.poll(protocol, endpoint, upstream, &task).await;
        self.apply_poll(&mut row, protocol, report).await;
    }

    pub(super) async fn apply_poll(
        &self,
        row: &mut TaskRow,
        protocol: TaskProtocol,
        report: PollReport,
    ) {
        let PollReport {
            polled,
            retry_after,
        } = report;
        let name = row.claim.task.to_string();
        let task = self.task_of(row, &name);
        match polled {
            PollResult::Delivered(delivery) => self.copy_and_end(row, protocol, delivery).await,
            PollResult::Ended(outcome) => self.end_as_reported(row, outcome).await,
            _ if is_over(row) => {
                self.cancel_upstream(row, protocol).await;
                let outcome = protocol.video.write_expired(&task);
                self.end(row, outcome, End::Abandoned).await;
            }
            PollResult::UnknownTask if is_gone(row) => {
                let message = "The upstream no longer knows the task.";
                let outcome = protocol.video.write_failed(&task, Cause::Gone, message);
                self.end(row, outcome, End::Abandoned).await;
            }
            PollResult::UnknownTask => {
                let changes = TaskChanges {
                    retry_after,
                    is_missing: true,
                    ..TaskChanges::default()
                };
                self.save_and_unclaim(row, changes).await;
            }
            PollResult::Running(running_state) => {
                let changes = TaskChanges {
                    running_state,
                    retry_after,
                    ..TaskChanges::default()
                };
                self.save_and_unclaim(row, changes).await;
            }
            PollResult::Unclear => {
                let changes = TaskChanges {
                    retry_after,
                    ..TaskChanges::default()
                };
                self.save_and_unclaim(row, changes).await;
            }
        }
    }

    pub(super) async fn poll(
        &self,
        protocol: TaskProtocol,
        endpoint: Endpoint,
        upstream: &TaskUpstream,
        task: &Task<'_>,
    ) -> PollReport {
        let (status, retry_after, answer) = match self.ask(endpoint, upstream).await {
            TaskReply::Answered(status, retry_after, answer) => (status, retry_after, answer),
            TaskReply::TooLarge => {
                let failed = protocol.video.write_failed(task, Cause::Media, TOO_LARGE);
                return PollReport {
                    polled: PollResult::Ended(failed),
                    retry_after: None,
                };
            }
            TaskReply::Nothing => return PollReport::unclear(),
        };
        let catalog = self.catalog();
        let channel = catalog.channel(&upstream.channel);
        let task = Task {
            hidden: channel.map_or(&[], |channel| channel.identity()),
            ..*task
        };
        let mut polled = protocol.video.read_poll(status, answer.body(), &task);
        if let PollResult::Delivered(delivery) = &mut polled {
            answer.deliver(delivery);
        }
        PollReport {
            polled,
            retry_after,
        }
    }

    /// Sends a request about a task to the channel that runs it.
    pub(super) async fn ask(&self, endpoint: Endpoint, upstream: &TaskUpstream) -> TaskReply {
        let catalog = self.catalog();
        let Some(channel) = catalog.channel(&upstream.channel) else {
            tracing::error!(
                channel = &*upstream.channel,
                "a task runs on a channel that is no longer configured"
            );
            return TaskReply::Nothing;
        };
        let mut attempt = Attempt::on(channel);
        let outgoing = UpstreamRequest {
            item: Some(upstream.id.clone()),
            ..UpstreamRequest::json(endpoint, &*upstream.model, Vec::new())
        };
        let exchange = async {
            let incoming = channel.send(&outgoing).await?;
            let (status, retry_after) = (incoming.status, incoming.retry_after);
            let collected =
                PollAnswer::collect_body(incoming.body, POLL_BYTES_MAX, &self.task_budget).await;
            let answer = match collected {
                Ok(answer) => Some(answer),
                // Only a video can make the answer about an operation this large.
                Err(CollectError::TooLarge) if status == 200 && endpoint == Endpoint::Operation => {
                    None
                }
                Err(error) => return Err(error),
            };
            Ok::<_, CollectError>((status, retry_after, answer))
        };
        match tokio::time::timeout(self.settings.tasks.lease / POLL_SHARE, exchange).await {
            Ok(Ok((status, retry_after, answer))) => {
                // An unknown task says nothing about the health of the channel.
                let reported_status = if status == 404 { 200 } else { status };
                attempt.report(upstream::CallOutcome::of_status(
                    reported_status,
                    retry_after,
                ));
                let Some(answer) = answer else {
                    let channel = channel.name();
                    let operation = &*upstream.id;
                    tracing::warn!(channel, operation, "the video of an operation is too large");
                    return TaskReply::TooLarge;
                };
                TaskReply::Answered(status, retry_after, answer)
            }
            // Our own lack of memory is not a failure of the channel.
            Ok(Err(CollectError::NoMemory)) => {
                let channel = channel.name();
                tracing::warn!(channel, "there is no memory for the answer to a poll");
                TaskReply::Nothing
            }
            Ok(Err(error)) => {
                tracing::debug!(channel = channel.name(), ungathered = ?error, "a poll failed");
                attempt.report(upstream::CallOutcome::Failed);
                TaskReply::Nothing
            }
            Err(_) => {
                attempt.report(upstream::CallOutcome::Failed);
                TaskReply::Nothing
            }
        }
    }

    async fn cancel_upstream(&self, row: &TaskRow, protocol: TaskProtocol) {
        if let (Some(upstream), Some(endpoint)) = (&row.upstream, protocol.cancel) {
            let status = self.ask(endpoint, upstream).await.status();
            tracing::info!(task = %row.claim.task, status, "a task was cancelled at its upstream");
        }
    }
}

/// Whether the upstream has answered "no such task" often enough, and for long enough.
fn is_gone(row: &TaskRow) -> bool {
    let since = row.missing_since.unwrap_or(row.claimed_at);
    let for_ms = row.claimed_at.get().saturating_sub(since.get());
    row.missing.saturating_add(1) >= MISSING_MIN && for_ms >= MISSING_MS_MIN
}
