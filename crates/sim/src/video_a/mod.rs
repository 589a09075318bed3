//! The video-A protocol: tasks that are created, polled, and end with a video.
//!
//! A task is pending for two polls and is done at the third. Words in brackets in its prompt
//! change this:
//!
//! | word | effect |
//! |---|---|
//! | `[polls=N]` | done at poll N + 1 |
//! | `[fail]` | fails without cost |
//! | `[refuse]` | is refused by moderation after the work, with cost |
//! | `[withhold]` | done, but the video is withheld |
//! | `[nothing]` | done without a video |
//! | `[expire]` | expires |
//! | `[unpriced]` | done without reporting its cost |
//!
//! Faults for a creation follow the model's name or are queued for it. Faults for a poll are queued for `poll/`
//! followed by the model's name.

mod call;
mod jobs;
mod poll;

pub(crate) use call::Create;
pub(crate) use jobs::{Job, Jobs};
pub(crate) use poll::{Poll, show_file};
