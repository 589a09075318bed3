//! Following: tasks whose time has come are claimed, polled and noted, or ended.

use std::sync::Arc;
use std::time::Duration;

use protocol::video::{Identity, Outcome, Polled, video_a};
use store::{End, TaskEnd, TaskNote, TaskRow, TaskUpstream};
use tokio::sync::Semaphore;
use upstream::{Endpoint, Outgoing};

use super::create::UNKNOWN;
use super::{bill, pace};
use crate::clock;
use crate::engine::Engine;
use crate::trial::Trial;

/// Polls under way at once.
const POLLS_MAX: usize = 256;
/// A claim outlasts the longest poll and its note (reliability T7).
const LEASE: Duration = Duration::from_secs(60);
const POLL_WITHIN: Duration = Duration::from_secs(20);
const POLL_BYTES_MAX: usize = 1 << 20;
/// "No such task" is believed when it is said so often, over so long (reliability T11).
const MISSING_MIN: u32 = 3;
const MISSING_MS_MIN: i64 = 5 * 60 * 1000;
/// The pause after the store has failed.
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);

/// What a poll has brought, and how long the upstream wants to be left alone.
struct Report {
    polled: Polled,
    retry_after: Option<Duration>,
}

impl Engine {
    /// Follows tasks for as long as the future is polled; polls under way are the engine's to wait for.
    pub async fn follow_tasks(self: Arc<Self>) {
        let places = Arc::new(Semaphore::new(POLLS_MAX));
        let look_every = pace::look_every(self.settings.tasks.poll_first);
        loop {
            let free = u32::try_from(places.available_permits()).unwrap_or(0);
            if free == 0 {
                tokio::time::sleep(look_every).await;
                continue;
            }
            match self.store.claim_tasks(free, LEASE, clock::now()).await {
                Ok(due) if due.is_empty() => tokio::time::sleep(look_every).await,
                Ok(due) => {
                    for row in due {
                        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                            return;
                        };
                        let engine = Arc::clone(&self);
                        self.tasks.spawn(async move {
                            engine.follow(row).await;
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

    /// One step of a claimed task.
    async fn follow(&self, row: TaskRow) {
        let name = row.claim.task.to_string();
        let identity = Identity {
            id: &name,
            model: &row.model,
            upstream_model: row.upstream.as_ref().map_or("", |upstream| &upstream.model),
        };
        let Some(upstream) = &row.upstream else {
            // Its creator died between the row and the note; it is not sent again (reliability T3).
            let outcome = video_a::write_failed(&identity, "internal_error", UNKNOWN);
            return self.end(&row, outcome, End::Abandoned).await;
        };
        let report = self.poll(upstream, &identity).await;
        let is_over = row.claimed_at >= row.expires_at;
        match report.polled {
            Polled::Ended(outcome) => match self.card_of(&row).await {
                Some(card) => {
                    let end = bill::end_of(&card, &row, &outcome);
                    self.end(&row, outcome, end).await;
                }
                // Its price is in the store, which does not answer now.
                None => self.note(&row, None, None, false).await,
            },
            _ if is_over => {
                let outcome = video_a::write_expired(&identity);
                self.end(&row, outcome, End::Abandoned).await;
            }
            Polled::Missing if is_gone(&row) => {
                let message = "The upstream no longer knows the task.";
                let outcome = video_a::write_failed(&identity, "internal_error", message);
                self.end(&row, outcome, End::Abandoned).await;
            }
            Polled::Missing => self.note(&row, None, report.retry_after, true).await,
            Polled::Running(snapshot) => {
                self.note(&row, snapshot, report.retry_after, false).await;
            }
            Polled::Unclear => self.note(&row, None, report.retry_after, false).await,
        }
    }

    async fn poll(&self, upstream: &TaskUpstream, identity: &Identity<'_>) -> Report {
        let unclear = Report {
            polled: Polled::Unclear,
            retry_after: None,
        };
        let catalog = self.catalog();
        let Some(channel) = catalog.channel(&upstream.channel) else {
            tracing::error!(
                channel = &*upstream.channel,
                task = identity.id,
                "a task runs on a channel that is no longer configured"
            );
            return unclear;
        };
        let mut trial = Trial::of(channel);
        let outgoing = Outgoing::json(Endpoint::Video, &upstream.id, Vec::new());
        let exchange = async {
            let incoming = channel.send(outgoing).await?;
            let (status, retry_after) = (incoming.status, incoming.retry_after);
            let body = incoming.body.collect(POLL_BYTES_MAX).await?;
            Ok::<_, upstream::CallError>((status, retry_after, body))
        };
        match tokio::time::timeout(POLL_WITHIN, exchange).await {
            Ok(Ok((status, retry_after, body))) => {
                // A task that is not known says nothing of the channel's health.
                let told = if status == 404 { 200 } else { status };
                trial.tell(upstream::Outcome::of_status(told, retry_after));
                Report {
                    polled: video_a::read_poll(status, &body, identity),
                    retry_after,
                }
            }
            Ok(Err(error)) => {
                tracing::debug!(channel = channel.name(), %error, "a poll failed");
                trial.tell(upstream::Outcome::Failed);
                unclear
            }
            Err(_) => {
                trial.tell(upstream::Outcome::Failed);
                unclear
            }
        }
    }

    async fn note(
        &self,
        row: &TaskRow,
        snapshot: Option<Vec<u8>>,
        retry_after: Option<Duration>,
        missing: bool,
    ) {
        let settings = &self.settings.tasks;
        let polls = row.polls.saturating_add(1);
        let note = TaskNote {
            claim: row.claim,
            snapshot: snapshot.map(Into::into),
            next_in: pace::poll_pause(settings.poll_first, settings.poll_max, polls, retry_after),
            missing,
            now: clock::now(),
        };
        if let Err(error) = self.store.note_task(note).await {
            tracing::warn!(%error, task = %row.claim.task, "a task could not be noted; its claim ends by itself");
        }
    }

    /// Settlement, snapshot and callback, in one transaction (reliability T4).
    async fn end(&self, row: &TaskRow, outcome: Outcome, end: End) {
        let ended = TaskEnd {
            claim: row.claim,
            status: outcome.status.into(),
            end: end.clone(),
            snapshot: outcome.snapshot.into(),
            now: clock::now(),
        };
        match self.store.end_task(ended).await {
            Ok(true) => self.count_settled(row, &end),
            // Somebody else has ended it.
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, task = %row.claim.task, "a task could not be ended; it is polled again");
            }
        }
    }
}

/// Whether the upstream has said often and long enough that there is no such task.
fn is_gone(row: &TaskRow) -> bool {
    let since = row.missing_since.unwrap_or(row.claimed_at);
    let for_ms = row.claimed_at.get().saturating_sub(since.get());
    row.missing.saturating_add(1) >= MISSING_MIN && for_ms >= MISSING_MS_MIN
}
