//! The reply to a call, in any protocol: status, headers, content, and the steps in which its body
//! is sent.

mod body_steps;
mod identity;
mod message;

pub(crate) use body_steps::{BodySteps, INVALID_UTF8_MARK, Step};
pub(crate) use identity::{Vendor, identity_headers, request_id};
pub(crate) use message::{Content, Event, EventKind, Reply, html_page};
