//! Asynchronous video: the protocols in which tasks are created, followed and shown.
//!
//! Each protocol reads a creation request ([`Creation`]) and says what becomes of a task ([`Protocol`]): it
//! reads what an upstream answers and writes snapshots in its own shape. The ids in them are ours.

mod check;
pub mod content_task;
mod google;
mod media;
mod media_url;
pub mod omni;
pub mod predict;
mod protocol;
mod task;
pub mod video_a;

pub use media::{Delivery, Hosted, MediaKind, Medium, Source};
pub use protocol::{Addressee, Creation, Deletion, Draft, Protocol};
pub use task::{Accepted, Bound, Cause, Outcome, Polled, Standing, Task, Used};
