//! The operators' listener: health, readiness, metrics, the admin API and the console.
//!
//! It never shares a port with the public listener. Health, readiness, metrics, the API's description and the console's
//! files need no token and reveal no secret. Every other path needs a token or a session, even if it does not exist
//! (K8); only sign-in takes its credential from the body.
//!
//! `listener` accepts connections, and `router` combines the resources. `api` contains what all resources share,
//! `access` authenticates requests and checks roles, `events` distributes live events, and `resources` has one file for
//! each resource.

mod access;
mod api;
mod console;
mod events;
mod listener;
mod resources;
mod router;
mod write_timeout_socket;

pub(crate) use access::Access;
pub(crate) use api::amount::{Credits, MicroText};
pub(crate) use api::state::AdminState;
pub(crate) use listener::AdminListener;
