//! The images endpoints, and images by URL in text requests.

mod edges;
mod edits;
mod fetched_urls;
mod generations;
mod prices;
mod stream;
