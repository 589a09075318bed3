//! Habits of real upstreams: correct answers in a form that the vendor's documentation does not
//! show, and the refusals that vendors send.

mod form;
mod vendors;

pub(crate) use form::{Habits, apply};
pub(crate) use vendors::VendorRefusal;
pub use vendors::{context_overflow_vendors, no_such_model_vendors};
