//! The life of a call, whatever it asks for: admit, try routes, relay, settle, journal.
//!
//! `run` is the life itself; `kind` is the trait for what differs between kinds of calls. `admission` owns the hold
//! until it is settled or released, `record` collects the journal row, and `progress` tells how far the call has
//! come. `route_plan` orders the routes, `attempt` reports to a channel's breaker how one attempt went.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod attempt;
pub(crate) mod collect_body;
mod drain;
pub(crate) mod kind;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod retry_budget;
pub(crate) mod route_plan;
pub(crate) mod run;
pub(crate) mod shutdown;
pub(crate) mod stream;
mod yield_to_ready;
