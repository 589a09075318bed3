//! Serves `POST /v1/messages`, and the count of its tokens (`count.rs`).
//!
//! In this protocol, models differ by name (`family.rs`). Thinking blocks have signatures, which are checked when a
//! client sends them back (`signature.rs`). The order of the history is checked as strictly as the vendor checks it
//! (`history.rs`).

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
