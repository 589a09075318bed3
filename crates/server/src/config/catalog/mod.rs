//! `[[channel]]` and `[[model]]`: how entries are read, and which of them can be used now.

mod billable;
pub(super) mod channel;
pub(super) mod model;
pub(super) mod plan;
mod price;
mod profile;
mod protocols;

pub use channel::Channel;
pub use model::Model;
pub use plan::{Plan, resolve};
pub(crate) use protocols::protocols_for;
