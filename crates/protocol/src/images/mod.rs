//! Images: `POST /v1/images/generations` and `POST /v1/images/edits`.
//!
//! A [`Request`] is read from JSON or a form, checked against the model's profile, and written for the family
//! of its upstream ([`Family`]). [`Request::rewrite`] converts a whole answer, and a [`Rewriter`] converts a
//! stream. Images are never decoded, and copied only if their form changes.

mod answer;
mod check;
mod delivery;
mod family;
mod fields;
mod form;
mod grade;
mod picture;
mod rebuilt_object;
mod request;
mod sequence;
mod sources;
mod stream;
mod usage;
mod write;

pub use family::Family;
pub use grade::{PriceGrade, Size, is_left_to_upstream};
pub use picture::Pictures;
pub use request::{Operation, Options, Request, read_form, read_json};
pub use stream::Rewriter;
pub use write::EncodedRequest;
