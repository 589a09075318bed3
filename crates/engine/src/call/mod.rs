//! The stages of every call: admit, try routes, relay, settle, journal.
//!
//! `run` runs these stages, and `kind` is the trait for the differences between kinds of calls. `admission` owns the
//! hold until it is settled or released. `record` collects the journal row, and `open_record` ensures that it is
//! written. `progress` shares the state of the call with its caller. `route_plan` orders the routes, `send` sends a
//! request over one of them, and `attempt` reports the outcome to the channel's breaker.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod arrival;
pub(crate) mod attempt;
pub(crate) mod collect_body;
mod drain;
mod early_stream;
pub(crate) mod failed_call;
pub(crate) mod kind;
pub(crate) mod open_record;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod retry_budget;
pub(crate) mod route_failure;
pub(crate) mod route_plan;
pub(crate) mod route_share;
pub(crate) mod route_timer;
mod run;
pub(crate) mod send;
pub(crate) mod shutdown;
mod started_stream;
pub(crate) mod stream;
mod stream_end;
mod stream_source;
mod waiting_stream;
pub(crate) mod yield_to_ready;
