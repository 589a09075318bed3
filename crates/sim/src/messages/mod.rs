//! `POST /v1/messages`.
//!
//! Beside what prompts and scripts steer everywhere, models differ by their names here
//! (`family.rs`), thinking blocks carry signatures that are checked when they come back
//! (`signature.rs`), and the order of the history is as strict as the vendor's (`history.rs`).

mod answer;
mod auth;
mod block;
mod cache;
mod call;
mod count;
mod event;
mod family;
mod format;
mod history;
mod member;
mod message;
mod refusal;
mod request;
mod signature;
mod stream;
mod thinking;
mod tools;
mod usage;

pub(crate) use call::Messages;
pub(crate) use count::Count;
pub(crate) use refusal::{no_such_path, too_large};
