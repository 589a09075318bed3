//! Re-hosting: the step between an upstream's finished work and the task's end, in which its media become
//! ours.
//!
//! Names are given and kept in the row before anything is copied, so that a second copy overwrites the first
//! (T9). A copy that fails for the time being is made again while the task's lifetime lasts; one
//! that is no film ends the task (T10).

use protocol::video::{Cause, Delivery, Hosted, MediaKind, Medium, Source};
use serde::{Deserialize, Serialize};
use store::{End, MediaId, TaskKept, TaskRow};

use super::poll::{Seen, is_over};
use super::protocols::Known;
use crate::clock;
use crate::engine::Engine;
use crate::media::Uncopied;

/// A delivery as the task's row keeps it.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    facts: String,
    media: Vec<KeptMedium>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptMedium {
    /// What it is called here.
    name: String,
    /// Its kind, by its file name's ending.
    kind: String,
    /// Absent when the answer itself was the medium: then it must be asked for again.
    url: Option<String>,
    is_optional: bool,
}

/// How the copies of a delivery went.
enum Rehosted {
    All(Vec<Option<Hosted>>),
    Later,
    /// The upstream must be asked again where its media are.
    Stale,
    Unfit,
}

impl Engine {
    /// Copies what was delivered and ends the task with it.
    pub(super) async fn rehost(&self, row: &mut TaskRow, known: Known, delivery: Delivery) {
        let kept = keep(row, &delivery);
        let lease = self.settings.tasks.lease;
        if !delivery.media.is_empty() {
            // Always JSON: a struct of texts.
            row.delivery = serde_json::to_string(&kept).ok().map(Into::into);
            let keeping = TaskKept {
                upstream: row.upstream.clone(),
                delivery: row.delivery.clone(),
                ..TaskKept::claim(row.claim, lease, clock::steady())
            };
            match self.store.keep_task(keeping).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, task = %row.claim.task, "a delivery could not be noted; its claim ends by itself");
                    return;
                }
            }
        }
        let copies = self.copy_all(row, known, &delivery, &kept);
        let Some(rehosted) = self.while_claimed(row.claim, lease, copies).await else {
            return;
        };
        let name = row.claim.task.to_string();
        let task = self.task_of(row, &name);
        match rehosted {
            Rehosted::All(hosted) => {
                let outcome = known.video.write_delivered(&task, &delivery.facts, &hosted);
                self.end_as_reported(row, outcome).await;
            }
            Rehosted::Later if !is_over(row) => self.note(row, Seen::default()).await,
            Rehosted::Stale if !is_over(row) => {
                if self.forget_places(row, kept).await {
                    self.note(row, Seen::default()).await;
                }
            }
            Rehosted::Later | Rehosted::Stale | Rehosted::Unfit => {
                let message = "The result of the task could not be kept.";
                let outcome = known.video.write_failed(&task, Cause::Media, message);
                self.end(row, outcome, End::Released).await;
            }
        }
    }

    /// Copies each medium. One that only this process has is tried until the task's time is over.
    async fn copy_all(
        &self,
        row: &TaskRow,
        known: Known,
        delivery: &Delivery,
        kept: &Kept,
    ) -> Rehosted {
        let mut hosted = Vec::new();
        for (medium, kept) in delivery.media.iter().zip(&kept.media) {
            let is_lost_with_us = known.poll.is_none() && kept.url.is_none();
            let copied = loop {
                let copied = self.copy(row, medium, &kept.name).await;
                let again = matches!(copied, Err(Uncopied::Later(_))) && is_lost_with_us;
                if !again || clock::steady() >= row.expires_at || self.leaving.is_cancelled() {
                    break copied;
                }
                let pause = tokio::time::sleep(self.settings.tasks.poll_max);
                self.leaving.run_until_cancelled(pause).await;
            };
            match copied {
                Ok(medium) => hosted.push(Some(medium)),
                Err(Uncopied::Unfit(_)) if medium.is_optional => hosted.push(None),
                Err(Uncopied::Unfit(_)) => return Rehosted::Unfit,
                Err(Uncopied::Stale(_)) if known.poll.is_some() => return Rehosted::Stale,
                Err(Uncopied::Stale(_) | Uncopied::Later(_)) => return Rehosted::Later,
            }
        }
        Rehosted::All(hosted)
    }

    /// Copies one medium to our storage under the name it was given.
    async fn copy(&self, row: &TaskRow, medium: &Medium, name: &str) -> Result<Hosted, Uncopied> {
        let Some(id) = MediaId::parse(name) else {
            return Err(Uncopied::Unfit("its row holds no name for it".to_owned()));
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

    /// Keeps the names of the media, but no longer where they were: they are asked for again then. False when
    /// somebody else may have the task.
    async fn forget_places(&self, row: &mut TaskRow, mut kept: Kept) -> bool {
        for medium in &mut kept.media {
            medium.url = None;
        }
        row.delivery = serde_json::to_string(&kept).ok().map(Into::into);
        let keeping = TaskKept {
            upstream: row.upstream.clone(),
            delivery: row.delivery.clone(),
            ..TaskKept::claim(row.claim, self.settings.tasks.lease, clock::steady())
        };
        // What is not noted is tried at the same place again.
        self.store.keep_task(keeping).await.unwrap_or(true)
    }
}

/// The delivery that a row keeps, when all of it can still be had without asking the upstream again.
pub(super) fn kept(row: &TaskRow) -> Option<Delivery> {
    let kept: Kept = serde_json::from_str(row.delivery.as_deref()?).ok()?;
    let media = kept.media.into_iter().map(|kept| {
        Some(Medium {
            kind: MediaKind::of_extension(&kept.kind)?,
            source: Source::Url(kept.url?),
            is_optional: kept.is_optional,
        })
    });
    Some(Delivery {
        facts: kept.facts,
        media: media.collect::<Option<_>>()?,
    })
}

/// A delivery with a name for each medium: the one it had before, or a fresh one.
fn keep(row: &TaskRow, delivery: &Delivery) -> Kept {
    let before = row.delivery.as_deref();
    let before: Option<Kept> = before.and_then(|text| serde_json::from_str(text).ok());
    let mut names = before
        .map(|kept| kept.media)
        .unwrap_or_default()
        .into_iter()
        .map(|kept| kept.name);
    let media = delivery.media.iter().map(|medium| KeptMedium {
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
    Kept {
        facts: delivery.facts.clone(),
        media: media.collect(),
    }
}
