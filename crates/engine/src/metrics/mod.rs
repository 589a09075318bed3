//! What a scraper sees: the metrics of the node, its requests and its media.

mod media_counts;
pub(crate) mod registry;
pub(crate) mod request_tally;
mod scrape;
