//! Tests of the images endpoints, and of images by URL in text requests.

mod edge_cases;
mod edits;
mod fetched_urls;
mod generations;
mod prices;
mod stream;
