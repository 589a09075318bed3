//! Reloads channels and models when the configuration file changes, or on SIGHUP.
//!
//! A file with problems changes nothing: the log names every problem, and the old catalog stays (R5).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::signal::unix::{SignalKind, signal};

use super::catalog_keeper::{CatalogKeeper, ReplaceError};
use crate::config::Config;

/// How often the file is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The pause before a valid file that could not be installed is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Watches the file for ever.
pub(crate) async fn watch(file: PathBuf, started_with: Config, keeper: Arc<CatalogKeeper>) {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            tracing::error!(%error, "SIGHUP cannot be received; the configuration is not reloaded");
            return;
        }
    };
    let mut last = stamp(&file);
    let mut retry_at = None;
    loop {
        tokio::select! {
            _ = hangups.recv() => {}
            () = tokio::time::sleep(CHECK_INTERVAL) => {
                let now = stamp(&file);
                // A file that is being replaced may be missing for a moment.
                let is_due = retry_at.is_some_and(|at| Instant::now() >= at);
                if (now == last && !is_due) || now.is_none() {
                    continue;
                }
            }
        }
        last = stamp(&file);
        retry_at = match reload(&file, &started_with, &keeper).await {
            Reloaded::Done | Reloaded::Invalid => None,
            Reloaded::NotInstalled => Some(Instant::now() + RETRY_INTERVAL),
        };
    }
}

/// The result of a reload.
enum Reloaded {
    Done,
    /// The file has problems. It is read again when it changes.
    Invalid,
    /// The file is valid but could not be installed. It is tried again.
    NotInstalled,
}

async fn reload(file: &Path, started_with: &Config, keeper: &CatalogKeeper) -> Reloaded {
    match keeper.reload(file).await {
        Ok(in_force) => {
            let models = in_force.config.models.len() - in_force.unlisted.len();
            tracing::info!(models, "the configuration is reloaded");
            if !in_force.config.differs_only_in_catalog(started_with) {
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

/// Changes whenever the file changes.
fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
