//! The content-task protocol: tasks that queue, run and end with a real film, and can be deleted.
//!
//! A task is queued at its first poll, runs at the second and has ended at the third. Words in brackets in
//! its text change its life:
//!
//! | word | |
//! |---|---|
//! | `[polls=N]` | has ended at poll N + 1 |
//! | `[queue]` `[run]` | is queued, or runs, for ever |
//! | `[race]` | is shown as queued, but runs already when it is to be deleted |
//! | `[fail]` `[refuse]` | fails by itself, or by moderation |
//! | `[expire]` `[cancel]` | expires, or is cancelled from elsewhere |
//! | `[unmetered]` | succeeds without telling its tokens |
//! | `[page]` `[cut]` | a page stands in the place of the film; the film is cut short |
//! | `[bad-frame]` | the last frame is no picture |
//!
//! Faults of a creation stand behind its model's name or are queued for it; those of other steps are queued
//! for `poll/`, `delete/` or `file/` and the model's name.

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
