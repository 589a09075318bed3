//! Describes the answers of a dialect to the native path. Each dialect has one [`AnswerLayout`].
//!
//! The dialects use this module, and [`crate::native`] uses the dialects. Nothing here depends on a
//! single dialect.

mod count_written;
mod events;
mod identity;
mod incomplete_event;
mod layout;
mod members;
mod output;
mod vendor_members;

pub(crate) use count_written::count_written;
pub(crate) use events::{Events, WriteEvents, each_item};
pub use identity::Identity;
pub(crate) use identity::{IdentityJson, IdentityMember, IdentitySet};
pub(crate) use incomplete_event::{IncompleteEvent, Item, Items, fill_index};
pub(crate) use layout::{AnswerLayout, EndMark};
pub(crate) use members::MemberSet;
pub(crate) use output::{ITEMS_MAX, Output, StreamEnd, StreamOpening};
pub(crate) use vendor_members::is_vendor_member;
