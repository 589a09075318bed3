//! Reloads channels and models when the configuration file or its catalog file changes, or on SIGHUP.
//!
//! A file with problems changes nothing: the log names every problem, and the old catalog stays in force (R5).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_server::{FileStamp, file_stamp};
use tokio::signal::unix::{SignalKind, signal};

use super::catalog_keeper::{CatalogKeeper, ReplaceError};
use crate::config::Config;

/// How often the files are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The delay before another attempt to install a valid file.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Watches the files. Returns only if SIGHUP cannot be received.
pub(crate) async fn watch(file: PathBuf, started_with: Config, keeper: Arc<CatalogKeeper>) {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            tracing::error!(%error, "SIGHUP cannot be received; the configuration is not reloaded");
            return;
        }
    };
    let mut last = Stamps::of(&file, &keeper);
    let mut retry_at = None;
    loop {
        tokio::select! {
            _ = hangups.recv() => {}
            () = tokio::time::sleep(CHECK_INTERVAL) => {
                let now = Stamps::of(&file, &keeper);
                let is_due = retry_at.is_some_and(|at| Instant::now() >= at);
                if !now.is_changed_since(&last) && !is_due {
                    continue;
                }
            }
        }
        last = Stamps::of(&file, &keeper);
        retry_at = match reload(&file, &started_with, &keeper).await {
            Reloaded::Done | Reloaded::Invalid => None,
            Reloaded::NotInstalled => Some(Instant::now() + RETRY_INTERVAL),
        };
        // The reloaded configuration may name another catalog file. This reload has already read that file, so record
        // its stamp.
        let now = Stamps::of(&file, &keeper);
        if now.catalog_file != last.catalog_file {
            last = Stamps {
                main: last.main,
                ..now
            };
        }
    }
}

/// The stamps of the configuration file and of its catalog file at one moment.
struct Stamps {
    main: Option<FileStamp>,
    catalog_file: Option<PathBuf>,
    catalog: Option<FileStamp>,
}

impl Stamps {
    fn of(file: &Path, keeper: &CatalogKeeper) -> Self {
        let catalog_file = keeper.in_force().config.catalog.file.clone();
        Self {
            main: file_stamp(file),
            catalog: catalog_file.as_deref().and_then(file_stamp),
            catalog_file,
        }
    }

    /// Whether one of the files has changed. A file that is being replaced may be missing for a moment, which does not
    /// count as a change.
    fn is_changed_since(&self, last: &Self) -> bool {
        let main = self.main.is_some() && self.main != last.main;
        let catalog = self.catalog.is_some() && self.catalog != last.catalog;
        main || catalog
    }
}

enum Reloaded {
    Done,
    /// The file has problems. It is read again when it changes.
    Invalid,
    /// The file is valid but could not be installed. The reload is retried.
    NotInstalled,
}

async fn reload(file: &Path, started_with: &Config, keeper: &CatalogKeeper) -> Reloaded {
    match keeper.reload(file, started_with).await {
        Ok((in_force, needs_restart)) => {
            let models = in_force.config.models.len() - in_force.unlisted.len();
            tracing::info!(models, "the configuration is reloaded");
            if needs_restart {
                tracing::warn!(
                    "settings other than channels, their timeouts and models have changed; they take effect after a restart"
                );
            }
            Reloaded::Done
        }
        Err(ReplaceError::Problems(problems)) => {
            for problem in &problems {
                tracing::error!(%problem, "the configuration is not reloaded");
            }
            Reloaded::Invalid
        }
        // The tasks may have ended by the next attempt.
        Err(ReplaceError::OpenTasks(channel, tasks)) => {
            tracing::error!(
                channel,
                tasks,
                "the configuration is not reloaded: it lacks a channel that still has open tasks"
            );
            Reloaded::NotInstalled
        }
        Err(error) => {
            tracing::error!(%error, "the configuration is not reloaded yet; it will be tried again");
            Reloaded::NotInstalled
        }
    }
}
