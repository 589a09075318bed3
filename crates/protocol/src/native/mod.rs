//! The native path: caller and upstream speak the same dialect, and only spans are changed.
//!
//! A request is read by [`read_head`], sent on by [`write_request`]; the answer comes back through
//! [`rewrite_answer`] or, as a stream, through a [`Rewriter`]. No tree is built on the way. Where
//! a dialect keeps what must be found or changed is a row of the `table`.

mod answer;
mod broken;
mod changes;
pub(crate) mod count_output;
mod counting;
mod event_checks;
pub(crate) mod events;
mod failure;
pub(crate) mod gap;
mod head;
pub(crate) mod identity;
mod inspection;
mod known_start;
mod links;
pub(crate) mod places;
mod report;
mod request;
pub(crate) mod request_strings;
mod seen;
pub(crate) mod server;
mod stored;
mod stream;
mod table;
pub(crate) mod unstreamed;

pub use answer::{Answer, rewrite_answer};
pub use broken::Broken;
pub use counting::{Counted, TokenCount, read_counted, write_counted};
pub(crate) use event_checks::{ToolWatch, is_end_mark, reports_unbillable_usage};
pub use failure::{read_failure, terminal_failure};
pub use head::Head;
pub use identity::Identity;
pub use links::links;
pub use request::{read_head, read_named_head, write_request, write_request_to};
pub use seen::Seen;
pub(crate) use stream::KEEP_ALIVE;
pub use stream::Rewriter;
