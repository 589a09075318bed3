//! `multipart/form-data`, read as it arrives and written again.
//!
//! A [`Reader`] takes the body in the pieces that the socket delivered and returns a [`Form`] whose
//! files consist of these pieces. Small pieces are joined; others are not copied unless a boundary splits them.
//! [`Form::write`] writes the form with another boundary.

mod disposition;
mod form;
mod pieces;
mod reader;

pub(crate) use form::list_name;
pub use form::{Form, Part};
pub use pieces::Pieces;
pub use reader::{FormError, Reader, boundary_of};
