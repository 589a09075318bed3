//! Searches the journal, follows it, and explains single calls.

mod attempts;
mod explain;
mod follow;
mod names;
mod search;

pub(crate) use attempts::{RouteNotes, read_fallback};
pub(crate) use explain::{Explanation, Priced};
pub(crate) use follow::{LATE_MAX, ShownRows};
pub(crate) use names::names_of_calls;
pub(crate) use search::{CallFilter, search, statuses};
