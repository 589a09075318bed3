//! Tests of upstreams that fail, refuse or misbehave: what the caller sees, what is charged, and which route is tried
//! next.

mod bedrock;
mod clouds;
mod converse;
mod failed_answers;
mod failed_streams;
mod failover;
mod fallbacks;
mod maintenance;
mod private_network;
mod route_limits;
mod route_order;
mod two_channels;
mod vendor_refusals;
mod vertex_videos;

use two_channels::{TWO_CHANNELS, hello, tried};
