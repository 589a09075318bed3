//! `multipart/form-data`, read as it arrives and written again.
//!
//! A [`Reader`] takes the body in the pieces that the socket delivered and returns a [`Form`] whose
//! files consist of these pieces. Nothing is copied unless a boundary splits a piece.
//! [`Form::write`] writes the form with another boundary.

mod disposition;
mod form;
mod reader;

pub(crate) use form::list_name;
pub use form::{Form, Part};
pub use reader::{FormError, Reader, boundary_of};
