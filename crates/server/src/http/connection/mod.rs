//! One connection: the thread that serves it, its timers, and the streams of HTTP/2.

pub(super) mod http2_streams;
pub(super) mod self_wake;
pub(super) mod serve_threads;
pub(super) mod timers;

pub(crate) use serve_threads::Gates;
