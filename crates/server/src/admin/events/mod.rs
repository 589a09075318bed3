//! Live events: one poller of the store for all listeners.

mod hub;
mod poller;

pub(crate) use hub::{EventHub, Subscription};
pub(crate) use poller::{CALLS_MAX, call_event};
