//! JSON schemas: an instance that satisfies one, filled from the prompt where it fits.

mod check;
mod fill;
mod number;
mod pattern;
mod text;

pub(super) use fill::{Optional, fill};
