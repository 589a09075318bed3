//! Calls to upstreams: who they are, how they are reached, how they fare.
//!
//! A [`Channel`] is one upstream account. It turns an [`Outgoing`] call into HTTP on a
//! kept-alive connection of its own pool and gives back an [`Incoming`] answer whose
//! [`Body`] carries every deadline with it. What it learns of the upstream's health goes
//! into its [`Breaker`]; [`order`] turns the health of several channels into an order of tries.
//!
//! What a caller or an upstream names by URL is fetched by a [`Guarded`] client instead, which
//! keeps to public addresses (`guarded/`).
//!
//! This crate knows no wallet, key or price, and reads no body: bytes go through unseen.
//! An upstream's credential enters as a [`Secret`] and leaves only in a request header.
//!
//! Start reading in `channel.rs`; the life of a call goes on in `request.rs`, `wire/` and `body.rs`.

mod address;
mod body;
mod breaker;
mod call;
mod channel;
mod error;
mod guarded;
mod health;
mod network;
mod pool;
mod preset;
mod request;
mod retry_after;
mod secret;
mod select;
mod socket;
mod spool;
mod timeouts;
mod wire;

pub use body::Body;
pub use breaker::{Breaker, Outcome, State};
pub use call::{Endpoint, Incoming, Outgoing};
pub use channel::{Channel, ChannelSpec};
pub use error::{CallError, ChannelError, Sent, Stage, What};
pub use guarded::{BoundedBody, Bounds, FetchError, Fetched, Guarded, Link, Policy, Post, Refusal};
pub use network::Network;
pub use preset::{Preset, Protocol, UnknownName};
pub use secret::Secret;
pub use select::{Candidate, order};
pub use socket::{Handshake, Socket, SocketAsk, SocketEndpoint, Tunnel, socket_config};
pub use spool::{Spool, Spooled};
pub use timeouts::Timeouts;
/// The bodies of fuzz targets; `wire` is nobody else's business.
#[cfg(fuzzing)]
pub use wire::{any_chunked, any_head};
