//! Re-hosting: the step between an upstream's finished work and the task's end, in which its media become
//! ours.
//!
//! Names are given and kept in the row before anything is copied, so that a second copy overwrites the first
//! (reliability T9). A copy that fails for the time being is made again while the task's lifetime lasts; one
//! that is no film ends the task (T10).

use protocol::video::{Cause, Delivery, Hosted, MediaKind, Medium, Source};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use store::{End, TaskKept, TaskRow};

use super::follow::{Seen, is_over};
use super::protocols::Known;
use crate::clock;
use crate::engine::Engine;

/// Letters of a medium's name: over 128 bits that nobody can guess (reliability K10).
const NAME_LETTERS: usize = 32;
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

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

/// How the copy of one medium went.
#[expect(dead_code, reason = "nothing is kept before there is media storage")]
enum Copied {
    Kept(Hosted),
    /// It could not be had or stored now.
    Later,
    /// It is not what it should be.
    Unfit,
}

/// How the copies of a delivery went.
enum Rehosted {
    All(Vec<Option<Hosted>>),
    Later,
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
                ..TaskKept::claim(row.claim, lease, clock::now())
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
            Rehosted::Later | Rehosted::Unfit => {
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
                let again = matches!(copied, Copied::Later) && is_lost_with_us;
                if !again || clock::now() >= row.expires_at {
                    break copied;
                }
                tokio::time::sleep(self.settings.tasks.poll_max).await;
            };
            match copied {
                Copied::Kept(medium) => hosted.push(Some(medium)),
                Copied::Unfit if medium.is_optional => hosted.push(None),
                Copied::Unfit => return Rehosted::Unfit,
                Copied::Later => return Rehosted::Later,
            }
        }
        Rehosted::All(hosted)
    }

    /// Copies one medium to our storage under `name`.
    async fn copy(&self, row: &TaskRow, medium: &Medium, name: &str) -> Copied {
        // TODO: copy through the guarded client into media storage when there is one.
        let _ = (row, medium, name);
        Copied::Later
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
        name: names.next().unwrap_or_else(fresh_name),
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

fn fresh_name() -> String {
    let mut random = rand::rng();
    let letter = || char::from(ALPHABET[random.random_range(0..ALPHABET.len())]);
    std::iter::repeat_with(letter).take(NAME_LETTERS).collect()
}
