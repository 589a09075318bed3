//! What a scraper sees: the metrics of the node, its requests, its calls and its media.

mod call_tally;
pub(crate) mod exemplars;
mod media_counts;
pub(crate) mod registry;
pub(crate) mod request_tally;
mod scrape;
pub(crate) mod telemetry_counts;
