//! What goes back to the caller, whatever the protocol: a reply, and the play of its bytes.

mod identity;
mod message;
mod play;

pub(crate) use identity::{Vendor, identity_headers, request_id};
pub(crate) use message::{Content, Event, EventKind, Reply, html_page};
pub(crate) use play::{BROKEN_SIGN, Play, Step};
