//! Asynchronous video: the protocols for creating, polling and showing tasks.
//!
//! Each protocol reads a creation request ([`CreationRequest`]), reads the upstream's answers, and writes
//! snapshots in its own format ([`Protocol`]). The ids in the snapshots are ours.

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

pub use media::{Delivery, HostedMedium, MediaKind, Medium, Source};
pub use protocol::{CreationRequest, CreationTarget, Deletion, Draft, Protocol};
pub use task::{
    Cause, CreationResult, Outcome, PollResult, ReportedUsage, RunningState, Task, UsageBound,
};
