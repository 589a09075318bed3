//! `POST /v1/messages`.
//!
//! In this protocol models differ by name (`family.rs`), thinking blocks have signatures that are
//! checked when a client sends them back (`signature.rs`), and the order of the history is as
//! strict as the vendor's (`history.rs`).

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
