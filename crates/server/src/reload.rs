//! A changed configuration file, or SIGHUP, puts a new catalog in the place of the old one.
//!
//! A file with problems changes nothing: every problem is reported and the old catalog stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use engine::Engine;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{self, Config};
use crate::gateway::install;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

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
    loop {
        tokio::select! {
            _ = hangups.recv() => {}
            () = tokio::time::sleep(LOOK) => {
                let now = stamp(&file);
                // A file that is being replaced may be missing for a moment.
                if now == seen || now.is_none() {
                    continue;
                }
            }
        }
        seen = stamp(&file);
        reload(&file, &started_with, &engine).await;
    }
}

async fn reload(file: &Path, started_with: &Config, engine: &Engine) {
    let loaded =
        Config::load(file).and_then(|config| config::resolve(&config).map(|plan| (config, plan)));
    let (config, plan) = match loaded {
        Ok(loaded) => loaded,
        Err(problems) => {
            for problem in &problems {
                tracing::error!(%problem, "the configuration is not reloaded");
            }
            return;
        }
    };
    let models = plan.models.len();
    if let Err(error) = install(engine, plan).await {
        tracing::error!(%error, "the configuration is not reloaded");
        return;
    }
    tracing::info!(models, "the configuration is reloaded");
    if !config.differs_only_in_catalog(started_with) {
        tracing::warn!("settings other than channels and models changed; they act after a restart");
    }
}

fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
