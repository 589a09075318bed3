//! Asynchronous video: the protocols in which tasks are created, followed and shown.
//!
//! Each protocol reads a creation request and checks it against the model's profile, writes it for an
//! upstream, reads what a poll brings, and writes snapshots in its own shape. The ids in them are ours.

mod media_url;
mod task;
pub mod video_a;

pub use task::{Identity, Outcome, Polled, Used};
