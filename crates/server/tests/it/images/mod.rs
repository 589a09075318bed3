//! The images endpoints, and images by URL in text requests.

mod edges;
mod fetched_urls;
mod generations;
mod prices;
mod stream;
