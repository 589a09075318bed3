//! The metrics of the node: its requests, calls, media and telemetry.

mod call_tally;
pub(crate) mod exemplars;
mod media_counts;
pub(crate) mod registry;
pub(crate) mod request_tally;
mod scrape;
pub(crate) mod telemetry_counts;
