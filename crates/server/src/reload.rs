//! A changed configuration file, or SIGHUP, puts a new catalog in the place of the old one.
//!
//! A file with problems changes nothing: every problem is reported and the old catalog stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use engine::Engine;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{self, Config};
use crate::gateway::{homeless_tasks, install};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long a good file waits that could not be put in place.
const RETRY: Duration = Duration::from_secs(5);

/// Follows the file for ever.
pub(crate) async fn watch(file: PathBuf, started_with: Config, engine: Arc<Engine>) {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            tracing::error!(%error, "SIGHUP cannot be received; the configuration is not reloaded");
            return;
        }
    };
    let mut seen = stamp(&file);
    let mut retry_at = None;
    loop {
        tokio::select! {
            _ = hangups.recv() => {}
            () = tokio::time::sleep(LOOK) => {
                let now = stamp(&file);
                // A file that is being replaced may be missing for a moment.
                let is_due = retry_at.is_some_and(|at| Instant::now() >= at);
                if (now == seen && !is_due) || now.is_none() {
                    continue;
                }
            }
        }
        seen = stamp(&file);
        retry_at = match reload(&file, &started_with, &engine).await {
            Reloaded::Done | Reloaded::Faulty => None,
            Reloaded::NotInstalled => Some(Instant::now() + RETRY),
        };
    }
}

/// What came of a reload.
enum Reloaded {
    Done,
    /// The file has problems; there is no use in reading it again as it is.
    Faulty,
    /// The file is good and could not be put in place now.
    NotInstalled,
}

async fn reload(file: &Path, started_with: &Config, engine: &Engine) -> Reloaded {
    let loaded =
        Config::load(file).and_then(|config| config::resolve(&config).map(|plan| (config, plan)));
    let (config, plan) = match loaded {
        Ok(loaded) => loaded,
        Err(problems) => {
            for problem in &problems {
                tracing::error!(%problem, "the configuration is not reloaded");
            }
            return Reloaded::Faulty;
        }
    };
    let homeless = homeless_tasks(engine, &plan).await;
    for (channel, tasks) in &homeless {
        tracing::error!(
            channel,
            tasks,
            "the configuration is not reloaded: it lacks a channel that still has open tasks"
        );
    }
    if !homeless.is_empty() {
        // They may have ended by then.
        return Reloaded::NotInstalled;
    }
    let models = plan.models.len();
    if let Err(error) = install(engine, plan).await {
        tracing::error!(%error, "the configuration is not reloaded yet; it is tried again");
        return Reloaded::NotInstalled;
    }
    tracing::info!(models, "the configuration is reloaded");
    if !config.differs_only_in_catalog(started_with) {
        tracing::warn!(
            "settings other than channels, their times and models changed; they act after a restart"
        );
    }
    Reloaded::Done
}

fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
