//! The long-running predict protocol: operations that are created, polled by name, and end with a video.
//!
//! An operation runs for two polls and is done at the third. Words in brackets in its prompt change
//! this:
//!
//! | word | effect |
//! |---|---|
//! | `[polls=N]` | done at poll N + 1 |
//! | `[fail]` | fails |
//! | `[refuse]` | its video is filtered |
//! | `[empty]` | done without a video |
//! | `[expire]` | the name becomes unknown |
//! | `[inline]` | the answer contains the video, in the form of the developer API |
//! | `[vertex]` | the answer contains the video, in the form of the cloud platform |
//! | `[redirect]` | the file redirects to an address that needs no key |
//! | `[broken]` | the file is not a video |
//!
//! Faults for a creation follow the model's name or are queued for it. Faults for a poll are queued for `poll/`, and
//! those for a file for `file/`, each followed by the model's name.

mod call;
mod poll;

pub(crate) use call::{Create, is_target};
pub(crate) use poll::{HOSTED, Poll, is_operation};
