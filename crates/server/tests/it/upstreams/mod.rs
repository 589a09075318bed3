//! Upstreams that fail, refuse or misbehave: what the caller sees and pays, and which route is tried next.

mod failed_answers;
mod failed_streams;
mod failover;
mod vendor_refusals;
