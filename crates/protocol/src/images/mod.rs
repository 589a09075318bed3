//! Pictures: `POST /v1/images/generations` and `POST /v1/images/edits`.
//!
//! A [`Request`] is read from JSON or a form, checked against the model's profile, and written for
//! the family of its upstream ([`Family`]); the answer comes back through [`Request::rewrite`] or,
//! as a stream, through a [`Rewriter`]. Pictures are never decoded, and copied only where their
//! form changes.

mod answer;
mod check;
mod delivery;
mod family;
mod fields;
mod form;
mod grade;
mod member;
mod picture;
mod request;
mod sequence;
mod sources;
mod stream;
mod usage;
mod write;

pub use family::Family;
pub use grade::{Grade, Size, is_open};
pub use picture::Pictures;
pub use request::{Asked, Request, Wants, read_form, read_json};
pub use stream::Rewriter;
pub use write::Worded;
