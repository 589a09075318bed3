//! `multipart/form-data`, read as it comes and written anew.
//!
//! A [`Reader`] takes the body in the pieces a socket brought and gives a [`Form`], whose files are
//! those very pieces: nothing is copied but what a boundary cut in two. [`Form::write`] puts them
//! out again under a boundary of ours.

mod disposition;
mod form;
mod reader;

pub use form::{Form, Part};
pub use reader::{FormError, Reader, boundary_of};
