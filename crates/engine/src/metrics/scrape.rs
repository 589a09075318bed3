//! The values that scrapers and the operators' listener read from the engine.

use std::time::{Duration, Instant};

use store::Backlog;
use upstream::BreakerState;

use super::registry::ScrapeValues;
use crate::engine::Engine;

/// How long a scrape waits for the database.
const BACKLOG_WITHIN: Duration = Duration::from_secs(2);

impl Engine {
    /// The metrics as text for a scraper.
    pub async fn scrape(&self) -> String {
        self.metrics.render(&self.scrape_values().await)
    }

    /// Like `scrape`, with exemplars: the trace of the last traced request in each bucket of a histogram.
    pub async fn scrape_with_exemplars(&self) -> String {
        let values = self.scrape_values().await;
        self.metrics.render_with_exemplars(&values)
    }

    async fn scrape_values(&self) -> ScrapeValues {
        ScrapeValues {
            backlog: self.read_backlog().await,
            stats: self.store.stats(),
            settled: self.store.settled(),
            uptime: self.started.elapsed(),
            channels: self.channel_states(),
        }
    }

    /// The backlog in the database. While the database does not answer, returns the last values.
    async fn read_backlog(&self) -> Backlog {
        let read = tokio::time::timeout(BACKLOG_WITHIN, self.store.backlog()).await;
        let mut last = self.backlog.lock();
        if let Ok(Ok(found)) = read {
            *last = found;
        }
        *last
    }

    /// The name and the breaker state of each channel. Disabled channels are left out, because no call uses them.
    pub fn channel_states(&self) -> Vec<(String, &'static str)> {
        let spell = |state: BreakerState| match state {
            BreakerState::Closed => "closed",
            BreakerState::Probe => "probe",
            BreakerState::Open { .. } => "open",
            BreakerState::CredentialRefused { .. } => "taken_out",
        };
        let catalog = self.catalog();
        catalog
            .channels()
            .filter(|channel| !catalog.is_disabled(channel.name()))
            .map(|channel| {
                (
                    channel.name().to_owned(),
                    spell(channel.state(Instant::now)),
                )
            })
            .collect()
    }
}
