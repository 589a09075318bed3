//! The video-A protocol: tasks that are created, polled, and end with a real film.
//!
//! A task shows progress for two polls and is done at the third. Words in brackets in its prompt change its
//! life:
//!
//! | word | |
//! |---|---|
//! | `[polls=N]` | done at poll N + 1 |
//! | `[fail]` | fails, and costs nothing |
//! | `[refuse]` | is refused by moderation after the work, and costs |
//! | `[withhold]` | is done, but its film is withheld |
//! | `[nothing]` | is done without a film |
//! | `[expire]` | expires |
//! | `[unpriced]` | is done without telling its cost |
//!
//! Faults of a creation stand behind its model's name or are queued for it; those of a poll are queued for
//! `poll/` and the model's name.

mod call;
mod jobs;
mod poll;

pub(crate) use call::Create;
pub(crate) use jobs::{Job, Jobs};
pub(crate) use poll::{Poll, video as show_film};
