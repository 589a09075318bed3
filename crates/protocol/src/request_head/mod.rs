//! The head of a request: the data that the gateway needs before it sends the request on.
//!
//! Each dialect fills in a [`Head`] (`read_head`). The rules that all dialects share are here: how
//! the input is counted, and that no request may name objects that the upstream stores.

mod head;
mod stored;
mod strings;
mod urls;

pub use head::{Head, LongCache};
pub(crate) use stored::{is_stored_address, refuse as refuse_stored};
pub(crate) use strings::{PromptMembers, read_members};
pub(crate) use urls::{fetchable_fields, may_name_url};
pub use urls::{fetchable_media_urls, fetchable_urls};
