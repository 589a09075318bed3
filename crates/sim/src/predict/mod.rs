//! Long-running predict: operations that are created, polled by name, and end with a real film.
//!
//! An operation runs for two polls and is done at the third. Words in brackets in its prompt change its life:
//!
//! | word | |
//! |---|---|
//! | `[polls=N]` | done at poll N + 1 |
//! | `[fail]` | fails |
//! | `[refuse]` | its film is filtered |
//! | `[empty]` | is done without a film |
//! | `[expire]` | is forgotten: the name is unknown |
//! | `[inline]` | the film stands in the answer, as the developers' API writes it |
//! | `[vertex]` | the film stands in the answer, as the platform writes it |
//! | `[redirect]` | the file has moved to where no key is needed |
//! | `[broken]` | the file is no film |
//!
//! Faults of a creation stand behind its model's name or are queued for it; those of a poll are queued for
//! `poll/` and the model's name, those of a file for `file/` and the name.

mod call;
mod poll;

pub(crate) use call::{Create, is_target};
pub(crate) use poll::{Poll, is_operation};
