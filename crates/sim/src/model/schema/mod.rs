//! Creates instances of JSON schemas, with values from the prompt where they fit.

mod check;
mod fill;
mod number;
mod text;

pub(super) use fill::{Optional, fill};
