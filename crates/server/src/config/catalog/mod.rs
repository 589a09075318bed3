//! `[[channel]]` and `[[model]]`: reads the entries, and decides which of them can be used now.

mod account;
mod billable;
pub(super) mod channel;
pub(super) mod channel_models;
mod known;
pub(super) mod live_plan;
pub(super) mod model;
mod model_choice;
mod price;
mod profile;
mod protocols;
mod routing;
mod source;

pub use account::{AccountSettings, AccountValue};
pub use channel::Channel;
pub(crate) use known::{is_reachable, pinned_dialect};
pub(crate) use live_plan::DISABLED;
pub use live_plan::{Plan, resolve};
pub use model::Model;
pub use model_choice::ModelChoice;
pub(crate) use protocols::protocols_for;
pub use source::{Source, Sources};
