//! The values that scrapers and the operators' listener read from the engine.

use std::time::Instant;

use upstream::BreakerState;

use super::registry::ScrapeValues;
use crate::engine::Engine;

impl Engine {
    /// The metrics as text for a scraper.
    pub fn scrape(&self) -> String {
        self.metrics.render(&self.scrape_values())
    }

    /// The same text with exemplars: the trace of the last traced request in each bucket of a histogram.
    pub fn scrape_with_exemplars(&self) -> String {
        self.metrics.render_with_exemplars(&self.scrape_values())
    }

    fn scrape_values(&self) -> ScrapeValues {
        ScrapeValues {
            stats: self.store.stats(),
            settled: self.store.settled(),
            uptime: self.started.elapsed(),
            channels: self.channel_states(),
        }
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
