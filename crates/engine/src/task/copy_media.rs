//! Copies the result of a task to our storage, after the upstream has delivered it and before the task ends.
//!
//! The row stores the names of the media before anything is copied, so that a second copy overwrites the first (T9). A
//! failed copy is repeated during the lifetime of the task. A result that is not a valid file ends the task (T10).

use protocol::video::{Cause, Delivery, HostedMedium, MediaKind, Medium, Source};
use serde::{Deserialize, Serialize};
use store::{ClaimRenewal, End, MediaId, TaskRow};

use super::claimed::{TaskChanges, is_over};
use super::protocols::TaskProtocol;
use crate::clock;
use crate::engine::Engine;
use crate::media::CopyError;

/// A delivery in the form in which the task's row stores it.
#[derive(Debug, Serialize, Deserialize)]
struct StoredDelivery {
    facts: String,
    media: Vec<StoredMedium>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredMedium {
    /// The id of the file in our storage.
    name: String,
    /// The kind of the file, as a file extension.
    kind: String,
    /// `None` if the file was part of the answer or its URL was stale. In that case the upstream must be polled again.
    url: Option<String>,
    is_optional: bool,
}

enum CopyOutcome {
    All(Vec<Option<HostedMedium>>),
    Later,
    /// The URLs are stale. The upstream must be polled for new ones.
    Stale,
    Unfit,
}

impl Engine {
    /// Copies the media of a delivery and ends the task with them.
    pub(super) async fn copy_and_end(
        &self,
        row: &mut TaskRow,
        protocol: TaskProtocol,
        delivery: Delivery,
    ) {
        let stored = with_file_names(row, &delivery);
        let lease = self.settings.tasks.lease;
        if !delivery.media.is_empty() {
            // Serialising strings and flags cannot fail.
            row.delivery = serde_json::to_string(&stored).ok().map(Into::into);
            let renewal = ClaimRenewal {
                upstream: row.upstream.clone(),
                delivery: row.delivery.clone(),
                ..ClaimRenewal::claim(row.claim, lease, clock::steady())
            };
            match self.store.renew_claim(renewal).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, task = %row.claim.task, "the outcome of a delivery could not be stored; its lease ends by itself");
                    return;
                }
            }
        }
        let copying = self.copy_all(row, protocol, &delivery, &stored);
        let Some(outcome) = self.while_claimed(row.claim, lease, copying).await else {
            return;
        };
        let name = row.claim.task.to_string();
        let task = self.task_of(row, &name);
        match outcome {
            CopyOutcome::All(hosted) => {
                let outcome = protocol
                    .video
                    .write_delivered(&task, &delivery.facts, &hosted);
                self.end_as_reported(row, outcome).await;
            }
            CopyOutcome::Later if !is_over(row) => {
                self.save_and_unclaim(row, TaskChanges::default()).await;
            }
            CopyOutcome::Stale if !is_over(row) => {
                if self.drop_urls(row, stored).await {
                    self.save_and_unclaim(row, TaskChanges::default()).await;
                }
            }
            CopyOutcome::Later | CopyOutcome::Stale | CopyOutcome::Unfit => {
                let message = "The result of the task could not be kept.";
                let outcome = protocol.video.write_failed(&task, Cause::Media, message);
                self.end(row, outcome, End::Released).await;
            }
        }
    }

    /// Copies each file. A file that only this process has is retried until the task has exceeded its lifetime or the
    /// node stops.
    async fn copy_all(
        &self,
        row: &TaskRow,
        protocol: TaskProtocol,
        delivery: &Delivery,
        stored: &StoredDelivery,
    ) -> CopyOutcome {
        let mut hosted = Vec::new();
        for (medium, stored) in delivery.media.iter().zip(&stored.media) {
            let is_lost_with_us = protocol.poll.is_none() && stored.url.is_none();
            let copied = loop {
                let copied = self.copy(row, medium, &stored.name).await;
                let again = matches!(copied, Err(CopyError::Retryable(_))) && is_lost_with_us;
                if !again || clock::steady() >= row.expires_at || self.stopping.is_cancelled() {
                    break copied;
                }
                let pause = tokio::time::sleep(self.settings.tasks.poll_max);
                self.stopping.run_until_cancelled(pause).await;
            };
            match copied {
                Ok(medium) => hosted.push(Some(medium)),
                Err(CopyError::Invalid(_)) if medium.is_optional => hosted.push(None),
                Err(CopyError::Invalid(_)) => return CopyOutcome::Unfit,
                Err(CopyError::StaleUrl(_)) if protocol.poll.is_some() => {
                    return CopyOutcome::Stale;
                }
                Err(CopyError::StaleUrl(_) | CopyError::Retryable(_)) => return CopyOutcome::Later,
            }
        }
        CopyOutcome::All(hosted)
    }

    async fn copy(
        &self,
        row: &TaskRow,
        medium: &Medium,
        name: &str,
    ) -> Result<HostedMedium, CopyError> {
        let Some(id) = MediaId::parse(name) else {
            return Err(CopyError::Invalid(
                "its row holds no name for it".to_owned(),
            ));
        };
        let catalog = self.catalog();
        let channel = row.upstream.as_ref().map(|upstream| &*upstream.channel);
        let home = channel.and_then(|name| catalog.channel(name));
        let copied = self.copy_medium(medium, home, id).await;
        if let Err(reason) = &copied {
            tracing::warn!(task = %row.claim.task, channel, %reason, "a result was not copied");
        }
        copied
    }

    /// Keeps the names of the media and drops their URLs, so that the upstream is polled for new URLs. Returns `false`
    /// if another node may have claimed the task.
    async fn drop_urls(&self, row: &mut TaskRow, mut stored: StoredDelivery) -> bool {
        for medium in &mut stored.media {
            medium.url = None;
        }
        row.delivery = serde_json::to_string(&stored).ok().map(Into::into);
        let renewal = ClaimRenewal {
            upstream: row.upstream.clone(),
            delivery: row.delivery.clone(),
            ..ClaimRenewal::claim(row.claim, self.settings.tasks.lease, clock::steady())
        };
        // If the write fails, the old URLs are tried again.
        self.store.renew_claim(renewal).await.unwrap_or(true)
    }
}

/// The delivery in the row of a task, if all of its files can be fetched without another poll.
pub(super) fn stored_delivery(row: &TaskRow) -> Option<Delivery> {
    let stored: StoredDelivery = serde_json::from_str(row.delivery.as_deref()?).ok()?;
    let media = stored.media.into_iter().map(|stored| {
        Some(Medium {
            kind: MediaKind::of_extension(&stored.kind)?,
            source: Source::Url(stored.url?),
            is_optional: stored.is_optional,
        })
    });
    Some(Delivery {
        facts: stored.facts,
        media: media.collect::<Option<_>>()?,
    })
}

/// A delivery with a name for each file: the one in the row, or a new one.
fn with_file_names(row: &TaskRow, delivery: &Delivery) -> StoredDelivery {
    let before = row.delivery.as_deref();
    let before: Option<StoredDelivery> = before.and_then(|text| serde_json::from_str(text).ok());
    let mut names = before
        .map(|stored| stored.media)
        .unwrap_or_default()
        .into_iter()
        .map(|stored| stored.name);
    let media = delivery.media.iter().map(|medium| StoredMedium {
        name: names
            .next()
            .unwrap_or_else(|| MediaId::random().to_string()),
        kind: medium.kind.extension().to_owned(),
        url: match &medium.source {
            Source::Url(url) => Some(url.clone()),
            Source::Base64(_) => None,
        },
        is_optional: medium.is_optional,
    });
    StoredDelivery {
        facts: delivery.facts.clone(),
        media: media.collect(),
    }
}
