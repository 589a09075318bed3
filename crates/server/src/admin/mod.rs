//! The operators' listener: health, readiness, metrics, the admin API and the console.
//!
//! It never shares a port with the public listener. Health, readiness, metrics, the API's description and the files
//! of the console need no token and reveal no secret; every other path needs one, whether it exists or not (K8).
//!
//! `listener` accepts connections, `router` puts the resources together. `api` is what all resources share, `access`
//! decides who asks and what they may do, and `resources` has one file for each resource.

mod access;
mod api;
mod console;
mod events;
mod listener;
mod patient_socket;
mod resources;
mod router;

pub(crate) use access::Access;
pub(crate) use api::amount::{Credits, MicroText};
pub(crate) use api::state::AdminState;
pub(crate) use listener::AdminListener;
