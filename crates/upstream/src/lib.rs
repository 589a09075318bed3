//! Calls to upstreams: who they are, how they are reached, how they fare.
//!
//! A [`Channel`] is one upstream account. It turns an [`UpstreamRequest`] call into HTTP on a
//! kept-alive connection of its own pool and gives back an [`UpstreamResponse`] answer whose
//! [`Body`] carries every deadline with it. What it learns of the upstream's health goes
//! into its [`Breaker`]; [`order_routes`] turns the health of several channels into an order of tries.
//!
//! What a caller or an upstream names by URL is fetched by a [`Guarded`] client instead, which
//! keeps to public addresses (`guarded/`).
//!
//! This crate knows no wallet, key or price, and reads no body: bytes go through unseen.
//! An upstream's credential enters as a [`Secret`] and leaves only in a request header.
//!
//! Start reading in `channel.rs`; the life of a call goes on in `request.rs`, `wire/` and `body.rs`.

mod address;
mod breaker;
mod channel;
mod endpoint;
mod error;
mod guarded;
mod head_template;
mod health;
mod network;
mod pool;
mod preset;
mod request;
mod response;
mod retry_after;
mod route_order;
mod secret;
mod socket;
mod spool;
mod timeouts;
mod wire;

pub use breaker::{Breaker, BreakerState, CallOutcome};
pub use channel::{Channel, ChannelSpec};
pub use endpoint::Endpoint;
pub use error::{CallError, CallErrorKind, ChannelError, Sent, TimeoutStage};
pub use guarded::{
    AddressPolicy, BoundedBody, ExternalUrl, FetchError, FetchLimits, FetchResponse, Guarded, Post,
    UrlRefusal,
};
pub use network::Network;
pub use preset::{Preset, Protocol, UnknownName};
pub use request::UpstreamRequest;
pub use response::{Body, UpstreamResponse};
pub use route_order::{RouteCandidate, order_routes};
pub use secret::Secret;
pub use socket::{Handshake, Socket, SocketEndpoint, SocketRequest, SocketStream, socket_config};
pub use spool::{SpoolFile, SpooledPart};
pub use timeouts::Timeouts;
/// The bodies of fuzz targets; `wire` is nobody else's business.
#[cfg(fuzzing)]
pub use wire::{any_chunked, any_head};
