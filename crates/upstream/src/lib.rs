//! Calls upstreams: their settings, connections and health.
//!
//! A [`Channel`] is one account at an upstream. It sends an [`UpstreamRequest`] over a kept-alive connection of its own
//! pool and returns an [`UpstreamResponse`], whose [`Body`] enforces the deadlines of the call. The outcome of each
//! call updates the channel's [`Breaker`]; [`order_routes`] orders the routes of a model by the health of their
//! channels first, and then by priority, by cost or latency, by stickiness and by weight.
//!
//! A [`Guarded`] client calls URLs that a client or an upstream names. It connects to public addresses only
//! (`guarded/`).
//!
//! This crate knows nothing about wallets, API keys and prices, and does not interpret bodies. An upstream's credential
//! enters as a [`Secret`] and leaves only in a request header or in a token request (`credential/`).
//!
//! Start reading in `channel.rs`. A call continues in `head_template.rs`, `wire/` and
//! `response.rs`.

mod address;
mod breaker;
mod channel;
mod channel_protocol;
mod credential;
mod endpoint;
mod error;
mod guarded;
mod head_template;
mod header_line;
mod health;
mod history;
mod network;
mod open_connections;
mod operator_endpoint;
mod pool;
mod preset;
mod rendezvous;
mod request;
mod response;
mod retry_after;
mod route_order;
mod secret;
mod socket;
mod spool;
mod timeouts;
mod unknown_name;
mod wire;

pub use breaker::{Breaker, BreakerState, CallOutcome};
pub use channel::{Channel, ChannelSpec};
pub use channel_protocol::Protocol;
pub use credential::{Account, TokenError};
pub use endpoint::Endpoint;
pub use error::{CallError, CallErrorKind, ChannelError, Sent, TimeoutStage};
pub use guarded::{
    AddressPolicy, BoundedBody, ExternalUrl, FetchError, FetchLimits, FetchResponse, Guarded,
    LOOKUPS_OF_CALLER_MAX, Post, UrlRefusal,
};
pub use history::MinuteOfCalls;
pub use network::{Network, client_network};
pub use operator_endpoint::{OperatorEndpoint, PostAnswer};
pub use preset::{AccountSetting, Preset, SettingNeed};
pub use rendezvous::{hash_bytes, sticky_rank};
pub use request::{UpstreamRequest, betas};
pub use response::{Body, UpstreamResponse};
pub use route_order::{RouteCandidate, order_routes};
pub use secret::Secret;
pub use socket::{Handshake, Socket, SocketEndpoint, SocketRequest, SocketStream, socket_config};
pub use spool::{SpoolFile, SpooledPart};
pub use timeouts::Timeouts;
pub use unknown_name::UnknownName;
pub use wire::{MemoryListener, Stream as UpstreamStream};
/// The entry points of the fuzz targets. The rest of `wire` is private.
#[cfg(fuzzing)]
pub use wire::{any_chunked, any_head};
