//! The content-task protocol: tasks that are queued, run, and end with a video. They can be cancelled or deleted.
//!
//! A task is queued at its first poll, running at the second and ended at the third. Words in
//! brackets in its text change this:
//!
//! | word | effect |
//! |---|---|
//! | `[polls=N]` | ends at poll N + 1 |
//! | `[queue]` `[run]` | stays queued, or running, forever |
//! | `[race]` | is shown as queued, but a deletion finds it running |
//! | `[fail]` `[refuse]` | fails, or is refused by moderation |
//! | `[expire]` `[cancel]` | expires, or is cancelled by someone else |
//! | `[unmetered]` | succeeds without reporting its tokens |
//! | `[page]` `[cut]` | the video file is an HTML page, or is truncated |
//! | `[bad-frame]` | the last frame is not a picture |
//!
//! The options `--rs` and `--dur` in the text apply where the request has no such member.
//!
//! Faults for a creation follow the model's name or are queued for it. Faults for polls, deletions and files are queued
//! for `poll/`, `delete/` or `file/` followed by the model's name. The list of tasks has no faults.

mod create;
mod delete;
mod file;
mod poll;
mod refusal;
mod tasks;

pub(crate) use create::Create;
pub(crate) use delete::Delete;
pub(crate) use file::File;
pub(crate) use poll::{Poll, list};
pub(crate) use tasks::{TaskPath, Tasks, task_path};

pub use tasks::TaskRecord;
